# frozen_string_literal: true

require "tmpdir"
require_relative "../../system/clock"
require_relative "../../system/foreground"
require_relative "../../system/ruby_options"
require_relative "../../allocators"
require_relative "../../model/agent/ends"
require_relative "../../native"
require_relative "descendants"

module Culet
  module Profile
    # Runs a command with the profile on. Each of its processes writes a stream at its end, and is read meanwhile, in
    # case that it is killed. culet's allocator samples malloc itself; in front of any other one the sampler is
    # preloaded (sampler/preload). Has the methods of a Session that Continuous uses.
    class Command
      # Pause between two looks at the processes.
      LOOK_SECONDS = 0.25
      # Interval in which programs without Ruby write what they have so far.
      WRITE_SECONDS = 2
      # A terminal sends these to culet, too.
      KEYBOARD = %w[INT QUIT].freeze
      private_constant :LOOK_SECONDS, :WRITE_SECONDS, :KEYBOARD

      # @return [Process::Status] of the command, once it has ended
      attr_reader :status

      # @param command [Array<String>]
      # @param program [String] path of the program
      # @param sample_bytes [Integer, nil] mean distance of samples; nil: the default
      # @param choice [Allocators::Choice] the program's allocator
      # @param notes [#puts] gets a line for each process that has left nothing
      # @param redirections [Hash] as for Process.spawn
      # @param look [#call, nil] gets the number of each Ruby process at its end, which waits for it
      def initialize(command:, program:, sample_bytes: nil, choice: Allocators.parse("culet"), notes: $stderr,
                     redirections: {}, look: nil)
        @command = command
        @program = program
        @sample_bytes = sample_bytes
        @choice = choice
        @notes = notes
        @redirections = redirections
        @look = look
        @noted = 0
      end

      # Runs the command to its end.
      #
      # @return [Array<Stream>] the command's own process first, then its descendants
      # @raise [Culet::Error] when the allocator is not installed, or no process left a stream
      # @raise [SystemCallError] when the command cannot be started
      def call
        start
        wait(LOOK_SECONDS) until ended?
        streams = take
        raise Foreground.error(nothing, status) if streams.empty?

        note_missing
        streams
      ensure
        stop
      end

      # Starts the command, unless it has been started.
      #
      # @return [Command] itself
      # @raise [Culet::Error] when the allocator is not installed, or cannot be preloaded
      # @raise [SystemCallError] when the command cannot be started
      def start
        return self if @folder

        @folder = Dir.mktmpdir("culet-profile")
        # Foreground ends its own handling in another thread, perhaps before this one has run a handler.
        @handlers = KEYBOARD.to_h { |name| [name, trap(name) { nil }] }
        foreground = Foreground.new(environment, @program, @command)
        @ends&.start(&@look)
        @thread = Thread.new { foreground.call(**@redirections) }
        @thread.report_on_exception = false
        sleep 0.001 until foreground.pid || !@thread.alive?
        @status = @thread.value unless foreground.pid
        @descendants = Descendants.new(foreground.pid, @folder)
        @descendants.look
        self
      rescue Error, SystemCallError
        clean_up
        raise
      end

      # @param doing [String] e.g. "every 60 s"
      def announce(doing) = @notes.puts("culet: profiling the command #{doing}")

      # Waits until the time is over or the command has ended.
      def wait(seconds, **)
        deadline = Clock.now + seconds
        until ended? || (left = deadline - Clock.now) <= 0 || @thread.join([left, LOOK_SECONDS].min)
          @descendants.look
        end
      end

      # Reads the processes that run; of those that have ended since the last time, what they have left.
      #
      # @return [Array<Stream>]
      # @raise [Culet::Error] when a file cannot be read
      def read(**) = take.tap { note_missing }

      # @return [Boolean] whether all has been read after the end of the command
      def stopped? = @last

      # Waits for the end of the command.
      def stop
        @thread&.join
      ensure
        clean_up
      end

      private

      def ended? = !@thread.alive?

      def take
        @last = ended?
        @status = @thread.value if @last
        @descendants.take
      end

      def note_missing
        @descendants.missing.drop(@noted).each do |name|
          @notes.puts("culet: #{name} ended without writing its profile, and before it could be asked for it")
        end
        @noted = @descendants.missing.size
      end

      def clean_up
        @handlers&.each { |name, handler| trap(name, handler || "DEFAULT") }
        @handlers = nil
        @ends&.stop
        @ends = nil
        FileUtils.remove_entry(@folder) if @folder
        @folder = nil
      end

      def environment
        allocator.merge("CULET_PROFILE" => (@sample_bytes || 1).to_s, "CULET_PROFILE_OUT" => File.join(@folder, "%p"),
                        "CULET_PROFILE_EVERY" => WRITE_SECONDS.to_s,
                        **at_end(RubyOptions.requiring(RubyOptions.file("profile"))))
      end

      def at_end(options)
        return { "RUBYOPT" => options } unless @look

        @ends = Agent::Ends.new(File.join(@folder, "ends"))
        @ends.environment(options)
      end

      def allocator
        base = @choice.environment
        return base if culet?

        sampler = Native.preloadable("sampler", "culet-sampler.so")
        base.merge("LD_PRELOAD" => [sampler, *base["LD_PRELOAD"]].join(":"), "CULET_INHERITED" => "0")
      end

      def culet? = @choice.name == "culet"

      def nothing
        name = @command.first
        if status.signaled?
          return "#{name} was killed by SIG#{::Signal.signame(status.termsig)} before it wrote its profile"
        end

        library = culet? ? "did not use culet's allocator" : "could not be sampled"
        "no process wrote a profile: #{name} #{library}, or was replaced by another program"
      end
    end
  end
end
