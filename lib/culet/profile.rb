# frozen_string_literal: true

require_relative "agent"
return if Culet::Native.another_copy?(__FILE__, "culet/profile")

require_relative "runtime/profile/labels"
require_relative "runtime/profile/settings"
# Not when it is needed: trap handlers cannot load files.
require_relative "system/atomic_file"

Culet.send(:mark, "profile") if Culet.native?

module Culet
  # `require "culet/profile"` makes the memory profile available: which code allocated what is in use. It is off until
  # Culet::Profile.start, CULET_PROFILE=512k (see Settings) or `culet profile PID`. Forked processes go on with it. What
  # malloc returns is sampled if the process runs on culet's allocator; Ruby's objects always.
  #
  # The extension defines:
  # - Culet::Profile.stop: ends sampling; the samples so far are kept, and are followed until they are freed
  # - Culet::Profile.booted: the program has booted; the view growth begins here. A forked process has its own, which
  #   begins with the fork; so does the first label (a request, a job)
  # - Culet::Profile.running?: whether this process samples
  # - Culet::Profile.sample_bytes: the mean distance of two samples
  # - Culet::Profile.label(name: value) { }: what the block allocates has these labels too; nil removes one
  # - Culet::Profile.labels: the labels in effect, a Hash
  module Profile
    class << self
      # Starts sampling. Forgets what an earlier profile has found, unless that still runs: then the distance changes.
      #
      # @param sample_bytes [Integer] mean distance of two samples in bytes
      # @return [void]
      # @raise [ArgumentError] for a distance that is not between 1 and 1 TiB
      # @raise [Culet::Error] without the native extension
      def start(sample_bytes: Settings::DEFAULT_BYTES)
        unless sample_bytes.is_a?(Integer) && sample_bytes.between?(1, Settings::MAX_BYTES)
          raise ArgumentError, "sample_bytes: #{sample_bytes.inspect} is not a number of bytes from 1 to #{Settings::MAX_BYTES}"
        end
        raise Error, Native.missing_reason("culet.so") unless Culet.native?

        sample(sample_bytes)
      end

      # Writes the profile so far as a file for `culet profile FILE`.
      #
      # @param path [String] the file; it is private (mode 0600) and appears when it is complete
      # @return [String] the path
      # @raise [Culet::Error] when it cannot be written; no part of it remains
      def write(path)
        raise Error, Native.missing_reason("culet.so") unless Culet.native?

        AtomicFile.open(path, secret: true) { |io| write_to(io.fileno) }
        path
      end

      # The profile so far, as `culet profile --json` prints it.
      #
      # @param view [Symbol] :live, :allocated, :peak, :growth
      # @return [Hash{String => Object}] the keys of docs/json.md
      # @raise [ArgumentError] for an unknown view
      # @raise [Culet::Error] without the native extension
      def report(view: :live)
        raise Error, Native.missing_reason("culet.so") unless Culet.native?

        require_relative "model/profile"
        unless VIEWS.include?(view.to_s)
          raise ArgumentError, "view: #{view.inspect} is not one of #{VIEWS.join(", ")}"
        end

        Document.new(Data.new([Recording.new(stream, name: "process #{::Process.pid}")]), view: view).to_h
      end

      # Starts as CULET_PROFILE says.
      #
      # @api private
      # @return [String, nil] a sentence if that is impossible
      def begin(settings)
        return settings.problem unless settings.sample_bytes
        return "the memory profile is off: #{Native.missing_reason("culet.so")}" unless Culet.native?

        start(sample_bytes: settings.sample_bytes)
        if settings.file
          require_relative "runtime/profile/endings"
          Endings.install(settings)
        end
        nil
      rescue SystemCallError, NoMemoryError => e
        "the memory profile is off: #{e.message}"
      end
    end

    unless Culet.native?
      # @return [void]
      # @raise [Culet::Error] always, with the reason
      def self.stop = raise(Error, Native.missing_reason("culet.so"))

      # @return [nil] nothing is sampled
      def self.booted = nil

      # @return [Boolean] always false
      def self.running? = false
    end
  end

  sentence = Profile.begin(Profile::Settings.new(ENV.fetch("CULET_PROFILE", nil), ENV.fetch("CULET_PROFILE_OUT", nil)))
  Native.warn(sentence) if sentence
end
