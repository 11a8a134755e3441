# frozen_string_literal: true

# says: a library maps memory for each document and unmaps none
# shape: small, single
# allocators: glibc, culet
# mapped: 20
require_relative "../../load"

# Not for jemalloc: the kernel joins its mappings and those beside them.
require "fiddle"
MMAP = Fiddle::Function.new(Fiddle::Handle::DEFAULT["mmap"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, *[Fiddle::TYPE_INT] * 3, Fiddle::TYPE_LONG],
                            Fiddle::TYPE_VOIDP)
READ_AND_WRITE = 3
PRIVATE_AND_ANONYMOUS = 0x22
BYTES = 1 << 17

Load.run(every: 0.25) do
  30.times { |number| Load.work(number) }
  document = MMAP.call(0, BYTES, READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0) # HERE
  document[0, BYTES] = "d" * BYTES
end
