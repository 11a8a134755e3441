# frozen_string_literal: true

# Run between loading the application and forking the workers, so that they share more memory: collects garbage,
# compacts the heap, promotes the surviving objects to the old generation, and returns free memory to the kernel.
#
# Process.warmup of Ruby 3.3 does all of that; earlier versions do it step by step. An object is old after its third
# collection.
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
    nil # where the kernel's pages are larger than Ruby's
  end

  # Of the active allocator, as in Process.warmup.
  def malloc_trim
    require "fiddle"
    Fiddle::Function.new(Fiddle::Handle::DEFAULT["malloc_trim"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT).call(0)
  rescue Fiddle::DLError
    nil # not in this libc
  end
end
