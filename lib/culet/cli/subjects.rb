# frozen_string_literal: true

require_relative "../system/processes/search"
require_relative "../scope"

module Culet
  module CLI
    # What the verbs that look into processes share: how a process is treated meanwhile, and that a word is a process
    # number, a process's name or a file's.
    module Subjects
      WATCH_SECONDS = 2.0
      # Screens are cleared by this between two looks.
      CLEAR = "\e[H\e[2J"
      # So many processes are named in a sentence.
      MOST_NAMED = 12
      # Words that can only be a file's name.
      FILE = %r{/|\.(?:snapshot|json|gz|trace)\z}
      private_constant :WATCH_SECONDS, :CLEAR, :MOST_NAMED, :FILE

      private

      def define_treatment(parser)
        parser.on("--live", "do not pause the process; memory that changes meanwhile is counted twice or not at all") do
          treat(:live)
        end
        parser.on("--stop", "pause the process once, until it is read (default: in slices of at most 20 ms)") do
          treat(:stopped)
        end
        parser.on("--pause-ms N", "longest pause of one slice, in milliseconds") do |v|
          options[:pause] = whole("--pause-ms", v, most: Numbers::MOST_PAUSE_MILLISECONDS)
        end
      end

      def define_watch(parser)
        parser.on("--watch [SECONDS]", "repeat every 2 or SECONDS seconds until Ctrl-C; " \
                                       "with --json, one document per line") do |v|
          options.merge!(watch: WATCH_SECONDS, watch_word: v)
        end
      end

      # @return [Array<String>] the words; `--watch 4242` alone is about process 4242
      def watched(words)
        word = options[:watch_word]
        return [word] if words.empty? && word

        options[:watch] = positive("--watch", word, most: Numbers::MOST_SECONDS) if word
        words
      end

      # A dumb terminal cannot be cleared.
      def clear_screen
        out.write(CLEAR) if out.tty? && ENV["TERM"] != "dumb" && !options[:out] && !options[:json]
      end

      def treat(mode)
        raise UsageError, "--live and --stop cannot be combined" if options.key?(:mode) && options[:mode] != mode

        options[:mode] = mode
      end

      # @param words [Array<String>] process numbers, names, and names of files where `files` says so
      # @param files [Boolean] whether a word can be a file's name
      # @return [Array<String>] each once; in place of a process's name the numbers of all that have it
      # @raise [Culet::Error] when there is none of a name
      def all_named(words, files: true)
        words.flat_map do |word|
          next [plain(word)] unless name?(word, files)

          families(word, files).flat_map(&:members).map { |one| one.pid.to_s }
        end.uniq
      end

      # @param words [Array<String>] as for `all_named`
      # @return [Array<String>] each once; in place of a process's name the numbers of those that have it and come from
      #   no other that has it
      # @raise [Culet::Error] as `all_named`
      def first_named(words, files: true)
        words.flat_map do |word|
          name?(word, files) ? families(word, files).map { |family| family.root.pid.to_s } : [plain(word)]
        end.uniq
      end

      # @param word [String] as for `all_named`
      # @return [String] the same; in place of a process's name the number of the one that has it, or from which all
      #   others come that have it
      # @raise [Culet::Error] when there is none, or there are several
      def one_named(word, files: true)
        return plain(word) unless name?(word, files)

        family, *others = families(word, files)
        if others.any?
          raise Error, "#{word.inspect} matches several processes: #{list([family, *others].map(&:root))}; " \
                       "give one process number"
        end

        rest = family.members - [family.root]
        err.puts("culet: #{word} is process #{family.root}#{"; its child processes: #{list(rest)}" if rest.any?}")
        family.root.pid.to_s
      end

      def families(word, files)
        Processes::Search.new(word).families
      rescue Processes::Search::Absent => e
        raise unless files

        raise Processes::Search::Absent, "there is no file #{word}, and #{e.message.sub(/; `ps.*/, "")}"
      end

      def list(matches)
        shown = matches.first(MOST_NAMED).join(", ")
        matches.size > MOST_NAMED ? "#{shown} and #{matches.size - MOST_NAMED} more" : shown
      end

      # A file whose name is a process's, or a number, goes by ./NAME.
      def name?(word, files) = !word.match?(/\A\d+\z/) && !(files && (word.match?(FILE) || File.file?(word)))

      # 007 is the same process as 7.
      def plain(word) = word.match?(/\A\d+\z/) ? word.sub(/\A0+(?=\d)/, "") : word

      # @param word [String] a process number or a snapshot's name
      # @param chunks [Integer, nil] most blocks listed one by one; 0: none; nil: the default
      # @return [Array<Culet::Scope::Moment>] one, or all of a series
      # @raise [Culet::Error]
      def moments(word, chunks: nil) = Culet::Scope.moments(word, **treatment, chunks: chunks)

      # @return [Array<Culet::Scope::Snapshot>] of all of them
      # @raise [Culet::Error]
      def snapshots(word, chunks: nil) = moments(word, chunks: chunks).map(&:snapshot)

      # @return [Hash] for Culet::Scope::Reader
      def treatment
        { mode: options.fetch(:mode, :sliced), pause_milliseconds: options[:pause], notes: (err if err.fileno) }
      end
    end
  end
end
