USERS = []
BY_NAME = {}
User = Struct.new(:name, :text)
def work(number)
  user = User.new("user #{number}", "profile of #{number} " * 20) # LEAK
  USERS << user
  BY_NAME[user.name] = user
end
