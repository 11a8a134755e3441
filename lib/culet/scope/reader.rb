# frozen_string_literal: true

require "io/wait"
require "tempfile"
require_relative "../errors"
require_relative "../native"
require_relative "../system/foreground"
require_relative "../system/processes"
require_relative "builder"

module Culet
  module Scope
    # Has culet-scope read a process.
    class Reader
      # How the process is treated meanwhile: paused for slices, paused once, or not at all.
      MODES = { sliced: [], stopped: ["--stop"], live: ["--live"] }.freeze
      PREFIX = "culet-scope: "
      # The descriptor that the program has for its notes.
      NOTES = 3
      # Bytes of a pipe.
      MOST_TEXT = 65_536
      # A preloaded allocator or its settings are for the user's programs.
      ENVIRONMENT = %w[LD_PRELOAD MALLOC_ARENA_MAX GLIBC_TUNABLES].to_h { |name| [name, nil] }.freeze
      private_constant :PREFIX, :NOTES, :MOST_TEXT, :ENVIRONMENT

      # @return [Integer] the process it reads
      attr_reader :pid

      # @param pid [Integer, String] a process number
      # @param mode [Symbol] one of MODES
      # @param pause_milliseconds [Integer, nil] longest pause of a slice; nil: the program's own
      # @param chunks [Integer, nil] the most blocks reported one by one; 0: none; nil: the default of culet-scope bound
      # @param notes [IO, nil] where the program writes what is to be known before the process is paused, e.g. that
      #   pauses will be long
      # @raise [Culet::UsageError] when it is no process number
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, mode: :sliced, pause_milliseconds: nil, chunks: nil, notes: nil)
        @pid = Processes::Live.find(pid).pid
        @options = MODES.fetch(mode).dup
        @options.push("--pause-ms", pause_milliseconds.to_s) if pause_milliseconds
        @options.push("--max-chunks", chunks.to_s) if chunks
        @options.push("--notes", NOTES.to_s) if notes
        @notes = notes
      end

      # @raise [Culet::Error] when the process cannot be read; the message says why and the way round it
      def snapshot = packed.snapshot

      # @return [PackedSnapshot]
      # @raise [Culet::Error] as `snapshot`
      def packed
        bytes = stream
        PackedSnapshot.new(name: "the output of culet-scope", environment: environment) { bytes }
      end

      # What the program writes goes to a file without a name, not through a pipe: so it never waits for us while it
      # holds the process. Its sentence of a failure does go through a pipe, since the disk may be full.
      #
      # @raise [Culet::Error] as `snapshot`
      def stream
        with_file do |out|
          status, text = IO.pipe { |reading, err| [run(out, err), text_of(reading)] }
          raise Error, failure(status, text) if status ? !status.success? : text.start_with?(PREFIX)

          out.rewind
          out.read
        end
      end

      private

      # Nil if the environment cannot be read: a report needs no environment.
      def environment
        Processes::Live.new(@pid).environment
      rescue Error
        nil
      end

      # The other end is still open here, maybe also in a process that another thread has forked.
      def text_of(reading)
        bytes = reading.wait_readable(0) ? reading.readpartial(MOST_TEXT) : +""
        bytes.force_encoding(Encoding::UTF_8).scrub
      end

      def with_file
        file = nameless_file
        yield file
      ensure
        file&.close
      end

      def nameless_file
        Tempfile.create("culet-scope", binmode: true).tap { |file| File.unlink(file.path) }
      rescue SystemCallError, ArgumentError => e
        raise Error, "cannot make a temporary file (#{Error.reason(e)}); " \
                     "name a folder that may be written to in TMPDIR"
      end

      # However we are left, the program does not outlive us; and the process it held runs on when it ends.
      def run(out, err)
        child = start(out: out, err: err)
        status = status_of(child)
        child = nil
        status
      ensure
        end_program(child) if child
      end

      # @return [Integer] the program's process number
      def start(**redirections) = spawn(*command, in: File::NULL, **redirections)

      def spawn(*words, **redirections)
        ::Process.spawn(ENVIRONMENT, *words, **redirections, **(@notes ? { NOTES => @notes } : {}))
      rescue SystemCallError => e
        raise Error, "cannot start #{words.first}: #{Error.reason(e)}"
      end

      # @return [Process::Status, nil] how it ended; nil where that cannot be known
      def status_of(child) = ::Process.wait2(child).last

      def command = [Native.part("reader", "culet-scope"), *@options, @pid.to_s]

      def end_program(child)
        ::Process.kill(:TERM, child)
        ::Process.wait(child)
      rescue Errno::ESRCH, Errno::ECHILD
        nil # it has ended by itself
      end

      def failure(status, text)
        sentence = text.lines.map(&:strip).reject(&:empty?).last
        return sentence.delete_prefix(PREFIX) if sentence&.start_with?(PREFIX)

        ending = "culet-scope #{Foreground.ending(status)}"
        return "#{ending} while it read process #{@pid}; the process runs on" if status.signaled?

        "#{ending}#{": #{sentence}" if sentence}"
      end
    end
  end
end
