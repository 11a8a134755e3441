# frozen_string_literal: true

# What a process does between loading its application and forking its workers, so
# that they share more of it: garbage is collected, so that no worker's first
# collection has to free it; objects are moved together, so that fewer of their
# pages have holes that workers fill; survivors become old, so that minor
# collections leave them alone; free memory goes back to the kernel.
#
# Ruby 3.3 has all of it in Process.warmup; for earlier versions it is put together
# here, ageing by repetition (an object is old after its third collection).
class Warmup
  AGE = 3

  def call
    AGE.times { GC.start }
    return Process.warmup if Process.respond_to?(:warmup)

    compact
    malloc_trim
  end

  private

  def compact
    GC.compact
  rescue NotImplementedError
    nil # where a page of the kernel's is larger than one of Ruby's
  end

  # The function of whichever allocator serves this process, if it has one; else glibc's, as Process.warmup does.
  def malloc_trim
    require "fiddle"
    Fiddle::Function.new(Fiddle::Handle::DEFAULT["malloc_trim"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT).call(0)
  rescue Fiddle::DLError
    nil # this libc has none
  end
end
