# frozen_string_literal: true

require_relative "../scope"

module Culet
  module CLI
    # What the verbs that look into processes share: how a process is treated meanwhile, and that a word is a process
    # number or a snapshot's name.
    module Subjects
      WATCH_SECONDS = 2.0
      private_constant :WATCH_SECONDS

      private

      def define_treatment(parser)
        parser.on("--live", "do not pause the process: figures may be off by what moves meanwhile") { treat(:live) }
        parser.on("--stop", "pause it once, until all is read: one moment (default: for slices of 20 ms at most)") { treat(:stopped) }
        parser.on("--pause-ms N", "longest pause of a slice, in milliseconds") { |v| options[:pause] = whole("--pause-ms", v) }
      end

      def define_watch(parser)
        parser.on("--watch [SECONDS]", "look again, every two seconds or as often as said, until Ctrl-C;", "with --json one document per line") do |v|
          options.merge!(watch: WATCH_SECONDS, watch_word: v)
        end
      end

      # @return [Array<String>] the words; `--watch 4242` alone is about process 4242
      def watched(words)
        word = options[:watch_word]
        return [word] if words.empty? && word

        options[:watch] = watch_seconds(word) if word
        words
      end

      def watch_seconds(text)
        value = Float(text, exception: false)
        return value if value&.positive? && value.finite?

        raise UsageError, "--watch takes seconds, e.g. 5 or 0.5, not #{text.inspect}"
      end

      def treat(mode)
        raise UsageError, "--live and --stop exclude each other" if options.key?(:mode) && options[:mode] != mode

        options[:mode] = mode
      end

      def whole(flag, text)
        value = Integer(text, 10, exception: false)
        return value if value&.positive?

        raise UsageError, "#{flag} takes a whole number from 1 on, not #{text.inspect}"
      end

      # @param word [String] a process number or a snapshot's name
      # @param chunks [Integer, nil] up to how many blocks are told one by one; 0: none; nil: as many as is usual
      # @return [Array<Culet::Scope::Moment>] one, or all of a series
      # @raise [Culet::Error]
      def moments(word, chunks: nil) = Culet::Scope.moments(word, **treatment, chunks: chunks)

      # @return [Array<Culet::Scope::Snapshot>] of all of them
      # @raise [Culet::Error]
      def snapshots(word, chunks: nil) = moments(word, chunks: chunks).map(&:snapshot)

      # @return [Hash] for Culet::Scope::Reader
      def treatment = { mode: options.fetch(:mode, :sliced), pause_milliseconds: options[:pause], notes: (err if err.fileno) }
    end
  end
end
