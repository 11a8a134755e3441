# frozen_string_literal: true

require_relative "../system/processes/search"
require_relative "../scope"
require_relative "../text/numbers"
require_relative "../text/size"

module Culet
  module CLI
    # What the verbs that look into processes share: how a process is treated meanwhile, and that a word is a process
    # number, a process's name or a file's.
    module ProcessArguments
      # So many processes are named in a sentence.
      MOST_NAMED = 12
      # Words that can only be a file's name. A title of several words may have slashes: "puma 6.6.0 (tcp://...)".
      FILE = %r{\A[^ ]*/[^ ]*\z|\.(?:snapshot|json|gz|trace)\z}
      NUMBER = /\A\d+\z/
      # A script is named as the process that runs it, also in its folder.
      SCRIPT = %r{\A[^/]+\.r[bu]\z}
      private_constant :MOST_NAMED, :FILE, :NUMBER, :SCRIPT

      private

      # @param several [Boolean] as for `roots_named`
      def define_names(parser, several: false)
        rule = several ? "" : "; if several such trees match, add the number of one"
        paragraph(parser, "NAME is the title, command, script or systemd unit of a process, or a part of one. " \
                          "It stands for the process and its descendants#{rule}.")
      end

      def define_treatment(parser)
        parser.on("--live", "do not pause the process; memory that changes meanwhile is counted twice or not at all") do
          treat(:live)
        end
        parser.on("--stop", "pause the process once, until it is read (default: in slices of at most 20 ms)") do
          treat(:stopped)
        end
        number(parser, "--pause-ms N", "longest pause of one slice, in milliseconds",
               most: Numbers::MOST_PAUSE_MILLISECONDS)
      end

      def treat(mode)
        raise UsageError, "--live and --stop cannot be combined" if options.key?(:mode) && options[:mode] != mode

        options[:mode] = mode
      end

      # What a verb makes of a name is the same for all: of one process tree that has it, the verb takes all processes,
      # or the root where it looks at one process or finds the others itself; of several the user chooses.

      # @param words [Array<String>] process numbers, names, and names of files where `files` says so
      # @param files [Boolean] whether a word can be a file's name
      # @return [Array<String>] each once; in place of a process's name the numbers of its tree
      # @raise [Culet::Error] when there is none of a name, or there are several and no word is the number of one
      def all_named(words, files: true)
        numbers = words.map { |word| plain(word) }.grep(NUMBER)
        each_named(words, files) { |word| trees(word, files, numbers: numbers).flat_map(&:members) }
      end

      # @param words [Array<String>] numbers and names of processes
      # @param several [Boolean] whether a name may stand for several trees
      # @return [Array<String>] each once; in place of a process's name the number of its tree's root
      # @raise [Culet::Error] as `all_named`
      def roots_named(words, several: false)
        each_named(words, false) { |word| (several ? families(word, false) : trees(word, false)).map(&:root) }
      end

      # @param word [String] as for `all_named`
      # @return [String] in place of a process's name the number of its tree's root
      # @raise [Culet::Error] as `all_named`
      def one_named(word, files: true)
        return plain(word) unless name?(word, files)

        root, *rest = trees(word, files).first.members
        err.puts("culet: #{word} is process #{root}#{"; its child processes: #{list(rest)}" if rest.any?}")
        root.pid.to_s
      end

      def each_named(words, files)
        words.flat_map { |word| name?(word, files) ? yield(word).map { |one| one.pid.to_s } : [plain(word)] }.uniq
      end

      # @param numbers [Array<String>, nil] of processes that stand beside the name, and choose from its trees; nil: a
      #   number alone chooses
      # @return [Array<Processes::Search::Family>] those that are meant, mostly one
      def trees(word, files, numbers: nil)
        found = families(word, files)
        return found if found.size == 1

        beside = found.select { |tree| numbers&.intersect?(tree.members.map { |one| one.pid.to_s }) }
        return beside if beside.any?

        # A verb that looks again and again asks once.
        @chosen ||= {}
        known = found.find { |tree| tree.root.pid == @chosen[word] } || choose(word, found, numbers)
        @chosen[word] = known.root.pid
        [known]
      end

      def choose(word, found, numbers)
        text = "#{word.inspect} matches #{found.size} process trees:\n#{choices(found)}\n"
        return ask(text, found) if err.tty? && $stdin.tty? && !options[:json]

        first = found.first.root.pid
        raise Processes::Search::Ambiguous, text + if numbers
                                                     "add the number of one, e.g. `culet #{verb} #{word} #{first}`; " \
                                                       "without the name a number is that process alone"
                                                   else
                                                     "give the number of one, e.g. `culet #{verb} #{first}`"
                                                   end
      end

      # @return [String] a line each: the root's number, the processes, their PSS, the root's title
      def choices(found)
        rows = found.map do |tree|
          [tree.root.pid.to_s, Text::Numbers.count(tree.members.size, "process", "processes"),
           "#{Text::Size.human(tree.pss_bytes)} PSS", tree.root.title]
        end
        widths = rows.transpose.first(3).map { |cells| cells.map(&:size).max }
        rows.map do |pid, *cells, title|
          padded = cells.zip(widths.drop(1)).map { |cell, width| cell.ljust(width) }
          "  #{[pid.rjust(widths[0]), *padded, title].join("  ")}"
        end.join("\n")
      end

      def ask(text, found)
        err.puts("culet: #{text.chomp}")
        err.write("the number of one: ")
        number = plain($stdin.gets.to_s.strip)
        found.find { |tree| tree.root.pid.to_s == number } ||
          raise(Processes::Search::Ambiguous, "#{shortened(number)} is not one of these numbers")
      end

      def families(word, files)
        Processes::Search.new(word).families
      rescue Processes::Search::Absent => e
        raise if !files || File.file?(word)

        raise Processes::Search::Absent, "there is no file #{word}, and #{e.message.sub(/; `ps.*/, "")}"
      end

      # @param words [Array<String>] process numbers and names; a name may stand for several trees; empty: all Ruby
      #   programs
      # @return [Array<Integer>] numbers of processes that exist
      # @raise [Culet::Error] as `all_named`
      def living_roots(words)
        if words.empty?
          return Processes::Search.ruby_roots.tap do |pids|
            next if pids.any?

            raise Error, "no Ruby program runs here that you may read; give a process number, or run culet as root"
          end
        end

        roots_named(words, several: true).map { |word| Processes::Live.find(word).pid }
      end

      def list(matches)
        shown = matches.first(MOST_NAMED).join(", ")
        matches.size > MOST_NAMED ? "#{shown} and #{matches.size - MOST_NAMED} more" : shown
      end

      # A file comes before a process of that name; one whose name is a number goes by ./NAME.
      def name?(word, files)
        !word.match?(NUMBER) && !(files && !word.match?(SCRIPT) && (word.match?(FILE) || File.file?(word)))
      end

      def file?(word) = !word.match?(NUMBER) && !name?(word, true)

      # 007 is the same process as 7.
      def plain(word) = word.match?(NUMBER) ? word.sub(/\A0+(?=\d)/, "") : word

      # @param word [String] a process number or a snapshot's name
      # @param chunks [Integer, nil] most blocks listed one by one; 0: none; nil: the default
      # @return [Array<Culet::Scope::PackedSnapshot>] one, or all of a series
      def packed_snapshots(word, chunks: nil) = Culet::Scope.packed_snapshots(word, **treatment, chunks: chunks)

      # @return [Array<Culet::Scope::Snapshot>] of all of them
      def snapshots(word, chunks: nil) = packed_snapshots(word, chunks: chunks).map(&:snapshot)

      # @return [Hash] for Culet::Scope::Reader
      def treatment
        { mode: options.fetch(:mode, :sliced), pause_milliseconds: options[:pause_ms], notes: (err if err.fileno) }
      end
    end
  end
end
