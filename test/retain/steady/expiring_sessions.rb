# Sessions live for 800 requests.
SESSIONS = {}
def work(number)
  SESSIONS[number] = { user: number, data: "data #{number} " * 30 }
  SESSIONS.delete(number - 800)
end
