class Bus
  HANDLERS = Hash.new { |hash, key| hash[key] = [] }
  def self.on(name, &block) = HANDLERS[name] << block
end
class Session
  def initialize(number)
    @state = "state #{number} " * 40 # LEAK
    Bus.on(:tick) { @state.size }
  end
end
def work(number) = Session.new(number)
