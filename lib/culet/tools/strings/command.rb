# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "../../system/foreground"
require_relative "../../system/foreign_file"
require_relative "../../system/foreign_json"
require_relative "../../system/ruby_options"
require_relative "../../system/shape"
require_relative "live"

module Culet
  module Strings
    # Runs a command and reads the strings of its Ruby process at its end, or on a signal.
    class Command
      FEATURE = "culet/runtime/strings/at_exit"
      # Requests the strings at once.
      SIGNAL = "USR1"
      # The shape of Slices#reading.
      READING = { "slices" => Shape::COUNT, "pause_seconds" => Shape::SECONDS,
                  "longest_pause_seconds" => Shape::SECONDS, "collection_seconds" => Shape::SECONDS }.freeze
      private_constant :READING

      # @return [Process::Status] of the command
      attr_reader :status

      # @return [Array<String>] problems of the reading
      attr_reader :problems

      # @param command [Array<String>]
      # @param program [String] path of the program
      # @param content [Boolean] whether contents leave the processes
      # @param trace [Boolean] whether Ruby records allocation sites
      # @param redirections [Hash] as for Process.spawn
      def initialize(command:, program:, content: true, trace: false, redirections: {})
        @command = command
        @program = program
        @content = content
        @trace = trace
        @redirections = redirections
        @problems = []
      end

      # @param record_file [#write] receives the records
      # @return [Command] itself
      # @raise [Culet::Error] when the command cannot be started, or no Ruby process reported strings
      def read(record_file)
        Dir.mktmpdir("culet-strings") do |folder|
          run(folder)
          path = @live_path || choose(folder)
          @reading = Shape.check(ForeignJson.parse(ForeignFile.read("#{path}.json")), READING, name: "#{path}.json")
          ForeignFile.open(path) { |file| record_file.write(file.read(BLOCK_BYTES)) until file.eof? }
        end
        self
      end

      # @return [String] name of the source
      def name = "#{@command.first} (process #{@source_pid}), #{@live_path ? "while it ran" : "at its end"}"

      # @return [Hash{String => Object}] figures of the reading
      attr_reader :reading

      # @return [String] the reading as a sentence
      def note = Live.note(reading)

      private

      BLOCK_BYTES = 1 << 20
      private_constant :BLOCK_BYTES

      def run(folder)
        foreground = Foreground.new(environment(folder), @program, @command)
        @status = foreground.answering(SIGNAL, **@redirections) { |pid| read_live(folder, pid) }
        @pid = foreground.pid
      end

      def environment(folder)
        { "RUBYOPT" => RubyOptions.loading(FEATURE, ENV.fetch("RUBYOPT", nil)), "CULET_STRINGS" => folder,
          "CULET_STRINGS_CONTENT" => (@content ? "1" : "0"), "CULET_STRINGS_TRACE" => (@trace ? "1" : "0") }
      end

      # The last answer counts.
      def read_live(folder, pid)
        path = File.join(folder, "asked.strings")
        live = File.open("#{path}.part", "wb") { |file| Live.new(pid, content: @content).read(file) }
        File.write("#{path}.json", JSON.generate(live.reading))
        File.rename("#{path}.part", path)
        @live_path = path
        @source_pid = pid
      rescue Error => e
        @problems << e.message
      end

      # The command's own process, or the one with most strings.
      def choose(folder)
        found = Dir[File.join(folder, "*.strings")].to_h { |path| [File.basename(path, ".strings").to_i, path] }
        raise Foreground.error(nothing, @status) if found.empty?

        @source_pid = found.key?(@pid) ? @pid : found.max_by { |_, path| File.size(path) }.first
        others = found.size - 1
        @problems << "#{others} more Ruby processes of the command ended; the report covers one" if others.positive?
        found.fetch(@source_pid)
      end

      def nothing
        if @status.signaled?
          return "#{@command.first} was killed by SIG#{::Signal.signame(@status.termsig)} " \
                 "before it reported its strings; send SIG#{SIGNAL} to culet before that"
        end

        "no Ruby process reported strings: #{@command.first} ran none, or none that loads culet, " \
          "or it ended by exit!; " \
          "send SIG#{SIGNAL} to culet while the command runs"
      end
    end
  end
end
