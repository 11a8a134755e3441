# frozen_string_literal: true

require_relative "../culet"

module Culet
  # Makes a process ready for being forked, once it has loaded what its children will share: what is garbage is gone, what
  # is not is old, so that the children's collections leave it alone, and free memory is the kernel's.
  module Warmup
    # Collections after which an object is old, see RVALUE_OLD_AGE in CRuby's gc.c.
    COLLECTIONS = 4

    module_function

    # @return [Hash] as Culet.warmup
    def call
      before = resident_bytes
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      steps = Process.respond_to?(:warmup) ? by_ruby : by_hand
      trimmed = trim
      { resident_before_bytes: before, resident_after_bytes: resident_bytes, trimmed_bytes: trimmed,
        seconds: Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, steps: trimmed ? steps + ["trim"] : steps }
    end

    # Ruby 3.3 and later.
    def by_ruby
      Process.warmup
      ["Process.warmup"]
    end

    # What Process.warmup does, as far as older Rubies offer it. Compaction comes before the strings' code ranges are
    # written, as there.
    def by_hand
      COLLECTIONS.times { GC.start }
      steps = ["GC.start"]
      steps << "GC.compact" if compact
      ObjectSpace.each_object(String, &:valid_encoding?)
      steps << "String#valid_encoding?"
    end

    # @return [Boolean] whether this Ruby, on this kernel's pages, can
    def compact
      GC.respond_to?(:compact) && !GC.compact.nil?
    rescue NotImplementedError
      false
    end

    # @return [Integer, nil] bytes; nil where the allocator has no call for it, or the native part is missing
    def trim
      Culet.trim
    rescue Error
      nil
    end

    # @return [Integer, nil] nil without /proc
    def resident_bytes
      pages = File.read("/proc/self/statm")[/\A\d+ (\d+)/, 1]
      pages && (Integer(pages, 10) * page_bytes)
    rescue SystemCallError
      nil
    end

    def page_bytes
      require "etc"
      Etc.sysconf(Etc::SC_PAGESIZE)
    end
    private_class_method :by_ruby, :by_hand, :compact, :trim, :resident_bytes, :page_bytes
  end
end
