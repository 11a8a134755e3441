class Audit
  @@log = []
  def self.note(number)
    @@log.push("audit #{number} " * 30) # LEAK
  end
end
def work(number) = Audit.note(number)
