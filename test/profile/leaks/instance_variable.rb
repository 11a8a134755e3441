class Registry
  def initialize = @entries = {}
  def register(number)
    @entries[number] = ["entry", number, "details of #{number} " * 20] # LEAK
  end
end
REGISTRY = Registry.new
def work(number) = REGISTRY.register(number)
