# frozen_string_literal: true

require_relative "cpu"

module Culet
  module Processes
    # What a process is called: by itself, by the kernel, by its files and by systemd. All of this any user may read, and
    # all of it but the executable is for the process to choose.
    class Identity
      # Programs that run a file named in their command line.
      INTERPRETER = /\A(?:j?ruby|truffleruby|python|perl|node)[\d.]*\z/
      # Options of theirs whose value is a word of its own.
      WITH_VALUE = %w[-r -I -C -E -W -m].freeze
      # What would move the cursor, change colours or turn the direction of writing.
      UNPRINTED = /[[:cntrl:]\u202a-\u202e\u2066-\u2069]/
      # A title is shown no longer than this.
      TITLE_COLUMNS = 60
      # More than any title.
      MOST_BYTES = 4096
      private_constant :INTERPRETER, :WITH_VALUE, :UNPRINTED, :TITLE_COLUMNS, :MOST_BYTES

      # @return [Integer]
      attr_reader :pid

      # @param pid [Integer]
      def initialize(pid)
        @pid = pid
      end

      # @return [String] as the process shows it: the title it gave itself ("puma 6.6.0 (tcp://0.0.0.0:3000) [app]"), or the
      #   names of its program and of the script ("ruby job.rb"); without arguments, which may be secret, and without
      #   control characters
      def title
        text = titled? ? words.first.strip : [program, script].compact.join(" ")
        text = comm if text.empty?
        text = text.gsub(UNPRINTED, "?")
        text.size > TITLE_COLUMNS ? "#{text[0, TITLE_COLUMNS - 2]}.." : text
      end

      # @return [Array<String>] each name by itself: program, script, first word of the title, the kernel's name, unit
      def names = [comm, program, script, executed, (words.first[/\A[^\s:]+/] if titled?), executable, *units].compact.reject(&:empty?).uniq

      # @return [Array<String>] systemd's units that it runs in, with and without what kind they are: "puma.service", "puma"
      def units
        @units ||= read("cgroup").scan(%r{[^/\n]+(?=\.(?:service|scope)(?:/|$))}).uniq.flat_map { |name| [name, "#{name}.service"] }
      end

      # @return [String] all words it was started with, or its title
      def command_line = words.join(" ")

      # @return [String] what the kernel calls it
      def comm = @comm ||= read("comm").chomp

      # @return [String, nil] the executable's file name; nil where it may not be known
      def executable
        return @executable if defined?(@executable)

        @executable = begin
          File.basename(File.readlink("/proc/#{pid}/exe").scrub("?").delete_suffix(" (deleted)"))
        rescue *GONE_OR_FORBIDDEN
          nil
        end
      end

      # @return [String] file name of what it was started as
      def program = @program ||= File.basename(words.first.to_s)

      # @return [String, nil] file name of the script that an interpreter runs
      def script
        at = script_at
        File.basename(words[at]) if at
      end

      private

      # A title is one word with spaces in it, which has taken the place of the words.
      def titled? = words.size == 1 && words.first.strip.include?(" ")

      # `bundle exec puma` is puma before it says so.
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
