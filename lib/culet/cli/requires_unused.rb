# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "command"
require_relative "program"
require_relative "process_arguments"
require_relative "../system/foreground"
require_relative "../../../boot/lib/report/unused"
require_relative "../../../boot/lib/report/unused_table"
require_relative "../system/ruby_options"

module Culet
  module CLI
    # `culet requires --unused`: compiled code that never ran.
    class RequiresUnused < Command
      include ProcessArguments

      # Of each list, unless more is asked for.
      LINES = 15
      private_constant :LINES

      # @return [String] the usage of the verb
      def banner = "culet requires --unused PID|NAME ... | -- COMMAND ... | FILE.json"

      # @return [String] name of the verb
      def verb = "requires --unused"

      # @return [String] one line for the overview
      def summary = "list the compiled code of a program that never ran"

      # @return [Array<String>] examples for --help
      def examples
        ["culet requires --unused -- bundle exec puma    all its processes, at exit",
         "culet requires --unused puma                   a running server and its workers",
         "#{RubyOptions.advice("unused")} bundle exec puma   prepare a server",
         "CULET_UNUSED_FROM=asked RUBYOPT=... bundle exec puma    from a request on",
         "culet requires --unused --json --out unused.json 4242",
         "culet requires --unused unused.json"]
      end

      # @return [Integer] exit status
      def execute(words, command)
        check(words, command)
        options.values_at(:svg, :out).compact.each { |path| AtomicFile.check(path) }
        document = document(words, command)
        draw(document) if options[:svg]
        deliver(options[:json] ? JSON.generate(document) : table(document))
        @status ? status_of(@status) : EXIT_OK
      end

      private

      def define(parser)
        parser.separator("Lists by gem and file the bytes of methods and blocks that never ran. Code that was " \
                         "loaded before culet/unused, and code evaluated from strings, is listed apart.")
        parser.separator("")
        define_names(parser)
        parser.on("--unused", "select this report") { nil }
        parser.on("--svg FILE", "also write a picture of the code by gem") { |v| options[:svg] = v }
        parser.on("--top N", "lines of each list (default: #{LINES})") do |v|
          options[:top] = whole("--top", v, most: Numbers::MOST_LINES)
        end
      end

      def check(words, command)
        raise UsageError, "give process numbers or a command, not both" if command && words.any?
        return unless command ? command.empty? : words.empty?

        raise UsageError, "no process given; write `culet requires --unused PID` or " \
                          "`culet requires --unused -- COMMAND ...`"
      end

      def document(words, command)
        return Culet::Boot::Unused.new(run(command)).to_h if command
        return Culet::Boot::Unused.load(words.first) if words.size == 1 && file?(words.first)

        Culet::Boot::Unused.new(all_named(words).map { |word| Culet::Boot::UnusedInquiry.new(word).call }).to_h
      end

      def file?(word) = !word.match?(/\A\d+\z/) && !name?(word, true)

      def table(document)
        fitted { Culet::Boot::UnusedTable.new(document, lines: options.fetch(:top, LINES), color: color?).to_s }
      end

      def draw(document)
        require_relative "../../../boot/lib/report/code_picture"
        picture = Culet::Boot::CodePicture.new(document, lines: options.fetch(:top, LINES))
        AtomicFile.write(options[:svg], picture.to_s)
        err.puts("culet: wrote #{options[:svg]}")
      end

      # @return [Array<Hash>] of each process that ended in its own time
      def run(command)
        program = Program.find(command.first)
        Dir.mktmpdir("culet-unused") do |folder|
          status = @status = start(program, command, folder)
          answers = Dir[File.join(folder, "*.json")].map { |path| Culet::Boot::Unused.read(path) }
          if answers.empty?
            raise Foreground.error("nothing was recorded: #{command.first} #{ending(status)}, and no Ruby process " \
                                   "that loaded culet exited normally", status)
          end

          err.puts("culet: the command #{ending(status)}") unless status.success?
          answers
        end
      end

      # Where the report is JSON, stdout is one document: the command's own output goes to stderr.
      def start(program, command, folder)
        [out, err].each(&:flush)
        words = ["-r#{RubyOptions.file("unused")}", ENV.fetch("RUBYOPT", nil)].compact.reject(&:empty?)
        foreground = Foreground.new({ "CULET_UNUSED" => folder, "RUBYOPT" => words.join(" ") }, program.path, command)
        options[:json] && !options[:out] ? foreground.call(out: :err) : foreground.call
      rescue SystemCallError => e
        raise program.error(e)
      end
    end
  end
end
