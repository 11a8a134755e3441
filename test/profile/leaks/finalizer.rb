class Handle
  def initialize(number)
    @buffer = "buffer #{number} " * 40 # LEAK
    # The block holds self, so the finalizer never runs.
    ObjectSpace.define_finalizer(self, proc { @buffer.clear })
  end
end
def work(number) = Handle.new(number)
