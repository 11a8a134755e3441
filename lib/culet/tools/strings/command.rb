# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "../../system/foreground"
require_relative "../../system/foreign_file"
require_relative "../../system/ruby_options"
require_relative "../../system/shape"
require_relative "live"

module Culet
  module Strings
    # A command of the user's, run to its end, and the strings that its Ruby process had then, or when it was asked.
    class Command
      # The command in the foreground; one signal is ours and does not go on to it.
      class Attended < Foreground
        # @param signal [String] its name
        # @yield in the signal's handler
        def initialize(environment, program, command, signal:, &wish)
          super(environment, program, command)
          @signal = signal
          @wish = wish
        end

        private

        def send_on(name, pid) = name == @signal ? @wish.call(pid) : super
      end

      FEATURE = "culet/runtime/strings/at_exit"
      # Has us ask at once.
      SIGNAL = "USR1"
      # What Slices#reading says.
      READING = { "slices" => Shape::COUNT, "pause_seconds" => Shape::SECONDS, "longest_pause_seconds" => Shape::SECONDS,
                  "collection_seconds" => Shape::SECONDS }.freeze
      private_constant :Attended, :READING

      # @return [Process::Status] how the command ended
      attr_reader :status

      # @return [Array<String>] what is amiss, in sentences
      attr_reader :problems

      # @param command [Array<String>]
      # @param program [String] path of its first word
      # @param content [Boolean] whether the strings' bytes may leave the processes
      # @param trace [Boolean] whether Ruby notes who allocates what
      # @param redirections [Hash] as for Process.spawn
      def initialize(command:, program:, content: true, trace: false, redirections: {})
        @command = command
        @program = program
        @content = content
        @trace = trace
        @redirections = redirections
        @problems = []
      end

      # @param spool [#write] gets the records
      # @return [Command] itself
      # @raise [Culet::Error] when the command cannot be started, or no Ruby process told its strings
      def read(spool)
        Dir.mktmpdir("culet-strings") do |folder|
          run(folder)
          path = @asked || choose(folder)
          @reading = Shape.check(JSON.parse(ForeignFile.read("#{path}.json")), READING, name: "#{path}.json")
          File.open(path, "rb") { |file| spool.write(file.read(BLOCK_BYTES)) until file.eof? }
        end
        self
      end

      # @return [String] what it is
      def name = "#{@command.first} (process #{@told_pid}), #{@asked ? "while it ran" : "at its end"}"

      # @return [Hash{String => Object}] how the reading went
      def reading = @reading

      # @return [String] the same in a sentence
      def note = Live.note(reading)

      private

      BLOCK_BYTES = 1 << 20
      private_constant :BLOCK_BYTES

      def run(folder)
        wishes = Queue.new
        foreground = Attended.new(environment(folder), @program, @command, signal: SIGNAL) { |pid| wishes << pid }
        asker = Thread.new { ask(folder, wishes) }
        @status = foreground.call(**@redirections)
        @pid = foreground.pid
      rescue SystemCallError => e
        raise Error.new("cannot run #{@program}: #{e.message.sub(/ - .*/, "").downcase}", exit_status: e.is_a?(Errno::ENOENT) ? 127 : 126)
      ensure
        wishes&.close
        asker&.join
      end

      def environment(folder)
        { "RUBYOPT" => RubyOptions.loading(FEATURE, ENV["RUBYOPT"]), "CULET_STRINGS" => folder, "CULET_STRINGS_CONTENT" => (@content ? "1" : "0"),
          "CULET_STRINGS_TRACE" => (@trace ? "1" : "0") }
      end

      # The last one that was answered counts.
      def ask(folder, wishes)
        while (pid = wishes.pop)
          begin
            path = File.join(folder, "asked.strings")
            live = File.open("#{path}.part", "wb") { |file| Live.new(pid, content: @content).read(file) }
            File.write("#{path}.json", JSON.generate(live.reading))
            File.rename("#{path}.part", path)
            @asked = path
            @told_pid = pid
          rescue Error => e
            @problems << e.message
          end
        end
      end

      # The command's own, or of those that it started the one with most.
      def choose(folder)
        found = Dir[File.join(folder, "*.strings")].to_h { |path| [File.basename(path, ".strings").to_i, path] }
        raise Foreground.error(nothing, @status) if found.empty?

        @told_pid = found.key?(@pid) ? @pid : found.max_by { |_, path| File.size(path) }.first
        @problems << "#{found.size - 1} more Ruby processes of the command ended; this one is told" if found.size > 1
        found.fetch(@told_pid)
      end

      def nothing
        return "#{@command.first} was ended by SIG#{::Signal.signame(@status.termsig)}, which leaves no time to tell its strings; send SIG#{SIGNAL} to culet before" if @status.signaled?

        "no Ruby process told its strings: #{@command.first} ran none, or none into which culet could be loaded, or it ended by exit!; " \
          "send SIG#{SIGNAL} to culet while the command runs"
      end
    end
  end
end
