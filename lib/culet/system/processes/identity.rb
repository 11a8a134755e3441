# frozen_string_literal: true

require_relative "cpu"

module Culet
  module Processes
    # The names of a process: its title, the kernel's name, its files and its systemd units. Any user may read them, and
    # the process chooses all but the executable.
    class Identity
      # Programs that run a file named in their command line.
      INTERPRETER = /\A(?:j?ruby|truffleruby|python|perl|node)[\d.]*\z/
      # Their options that take a separate argument.
      WITH_VALUE = %w[-r -I -C -E -W -m].freeze
      # Control characters, and those that change the direction of writing.
      UNPRINTED = /[[:cntrl:]\u202a-\u202e\u2066-\u2069]/
      # The kernel's names of the forked copies in which an agent looks at its process (ext/culet/agent/copy_tasks.c).
      COPIES = %w[culet-retain culet-strings culet-unused].freeze
      # Longest title that is printed.
      TITLE_COLUMNS = 60
      # More than any title.
      MOST_BYTES = 4096
      private_constant :INTERPRETER, :WITH_VALUE, :UNPRINTED, :TITLE_COLUMNS, :MOST_BYTES

      attr_reader :pid

      def initialize(pid)
        @pid = pid
      end

      # @return [String] the title it set ("puma 6.6.0 (tcp://0.0.0.0:3000) [app]"), or program and script ("ruby
      #   job.rb") without arguments, which may be secret; no control characters
      def title
        text = titled? ? words.first.strip : [program, script].compact.join(" ")
        text = comm if text.empty?
        text = text.gsub(UNPRINTED, "?")
        text.size > TITLE_COLUMNS ? "#{text[0, TITLE_COLUMNS - 2]}.." : text
      end

      # @return [String] for a sentence
      def to_s = "#{pid} (#{title})"

      # @return [Array<String>] kernel's name, program, script, first word of the title, executable, units
      def names
        first = words.first[/\A[^\s:]+/] if titled?
        [comm, program, script, executed, first, executable, *units].compact.reject(&:empty?).uniq
      end

      # @return [Array<String>] systemd units, with and without suffix: "puma.service", "puma"
      def units
        @units ||= begin
          names = read("cgroup").scan(%r{[^/\n]+(?=\.(?:service|scope)(?:/|$))}).uniq
          names.flat_map { |name| [name, "#{name}.service"] }
        end
      end

      # @return [String] command line, or title
      def command_line = words.join(" ")

      # @return [String] the kernel's name
      def comm = @comm ||= read("comm").chomp

      # @return [Boolean] whether it is a forked copy of a process, made by culet and about to end
      def copy? = COPIES.include?(comm)

      # @return [String, nil] file name of the executable; nil without permission
      def executable
        return @executable if defined?(@executable)

        @executable = begin
          File.basename(File.readlink("/proc/#{pid}/exe").scrub("?").delete_suffix(" (deleted)"))
        rescue *GONE_OR_FORBIDDEN
          nil
        end
      end

      # @return [String] file name of the first word of the command line
      def program = @program ||= File.basename(words.first.to_s)

      # @return [String, nil] file name of the script that an interpreter runs
      def script
        at = script_at
        File.basename(words[at]) if at
      end

      private

      # A title replaces the command line by one word that contains spaces.
      def titled? = words.size == 1 && words.first.strip.include?(" ")

      # `bundle exec puma` is puma before it sets its title.
      def executed
        at = script_at
        File.basename(words[at + 2]) if at && script == "bundle" && words[at + 1] == "exec" && words[at + 2]
      end

      def script_at
        return unless program.match?(INTERPRETER) && words.size > 1

        at = 1
        while (word = words[at])
          return if word.start_with?("-e")
          return at unless word.start_with?("-")

          at += WITH_VALUE.include?(word) ? 2 : 1
        end
      end

      def words = @words ||= read("cmdline").split("\0").then { |list| list.empty? ? [""] : list }

      def read(name)
        (File.binread("/proc/#{pid}/#{name}", MOST_BYTES) || +"").force_encoding(Encoding::UTF_8).scrub("?")
      rescue *GONE_OR_FORBIDDEN
        ""
      end
    end
  end
end
