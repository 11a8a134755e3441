# frozen_string_literal: true

require "json"
require "objspace"
require_relative "../../lib/culet"

# Figures of a process that do not come from what `culet explain` reads: of Ruby itself, of malloc, and of the kernel.
module Facts
  EVERY_SECONDS = 0.25
  SLOT_BYTES = 40

  class << self
    # @param file [String] which a line of JSON is appended to again and again
    def start(file)
      Thread.new do
        loop do
          line = JSON.generate(now)
          File.open(file, "a") { |io| io.write("#{line}\n") }
          sleep EVERY_SECONDS
        end
      end
    end

    private

    def now
      before = in_use
      GC.start unless ENV["PROGRAM_COLLECT"] == "no"
      { pid: Process.pid, seconds: Process.clock_gettime(Process::CLOCK_MONOTONIC), before_bytes: before, in_use_bytes: in_use,
        objects: GC.stat(:heap_live_slots), object_bytes: ObjectSpace.memsize_of_all, free_slot_bytes: free_slots * SLOT_BYTES,
        malloc_free_bytes: Culet.send(:malloc_totals)&.at(7), **code, **kernel }
    end

    def in_use = Culet.send(:malloc_in_use).to_i + (GC.stat(:heap_live_slots) * SLOT_BYTES)

    def free_slots = GC.stat(:heap_available_slots) - GC.stat(:heap_live_slots)

    # Compiled code; it does not change in a program that has loaded it.
    def code = @code ||= { code_bytes: ObjectSpace.count_objects_size.fetch(:T_IMEMO) }

    def kernel
      sums = File.read("/proc/self/smaps_rollup").scan(/^(\w+): +(\d+) kB/).to_h
      { rss_bytes: sums.fetch("Rss").to_i * 1024, private_bytes: (sums.fetch("Private_Dirty").to_i + sums.fetch("Private_Clean").to_i) * 1024 }
    end
  end
end
