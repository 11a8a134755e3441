# frozen_string_literal: true

module ScopeBench
  # A kind of heap to be read, and the process that has it.
  class Target
    HERE = __dir__
    # To fill a heap, on a busy machine.
    FILL_SECONDS = 900

    # heap: :ruby, or a KIND of heap.c; preload: whether it runs on culet
    Kind = Struct.new(:name, :about, :heap, :threads, :preload, keyword_init: true)

    KINDS = [
      Kind.new(name: "mixed", about: "blocks of 1 byte to 300 KB, a fifth free", heap: "mixed", threads: 8),
      Kind.new(name: "ruby", about: "a Ruby program's strings, hashes and arrays", heap: :ruby, threads: 4),
      Kind.new(name: "small", about: "blocks of 32 bytes", heap: "small", threads: 1),
      Kind.new(name: "holes", about: "most blocks free, much of it returned", heap: "holes", threads: 8),
      Kind.new(name: "busy", about: "8 threads replace blocks meanwhile", heap: "busy", threads: 8),
      Kind.new(name: "culet", about: "as mixed, on culet", heap: "mixed", threads: 8, preload: true),
      Kind.new(name: "culet-small", about: "as small, on culet", heap: "small", threads: 1, preload: true)
    ].freeze

    # @param built [String] folder of the C programs
    # @param megabytes [Integer] how large
    def initialize(kind, built, megabytes)
      @kind = kind
      @built = built
      @megabytes = megabytes
    end

    # Starts it, yields its pid when its heap is filled, and ends it.
    #
    # @yieldparam pid [Integer]
    # @return [Object] what the block returns
    # @raise [Culet::Error] when the heap is not filled in time
    def run
      output, input = IO.pipe
      pid = Process.spawn(environment, *command, in: File::NULL, out: input)
      input.close
      unless output.wait_readable(FILL_SECONDS) && output.gets == "ready\n"
        raise Culet::Error, "the heap #{@kind.name} was not filled; the machine may lack memory"
      end

      yield pid
    ensure
      output&.close
      if pid
        Process.kill(:KILL, pid)
        Process.wait(pid)
      end
    end

    private

    def environment
      { "LD_PRELOAD" => (allocator if @kind.preload), "MALLOC_ARENA_MAX" => nil, "GLIBC_TUNABLES" => nil }
    end

    def allocator = Culet::Native.find("libculet.so") || raise(Culet::Error, Culet::Native.missing_reason)

    def command
      size = [@megabytes.to_s, @kind.threads.to_s]
      return ["ruby", "--disable-gems", File.join(HERE, "records.rb"), *size] if @kind.heap == :ruby

      [File.join(@built, "heap"), @kind.heap, *size]
    end
  end
end
