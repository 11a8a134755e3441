# frozen_string_literal: true

require_relative "agent"
return if Culet::Native.another_copy?(__FILE__, "culet/profile")

require_relative "runtime/profile/labels"
require_relative "runtime/profile/settings"
# Loaded at once, because trap handlers cannot load files.
require_relative "system/atomic_file"

Culet.send(:mark, "profile") if Culet.native?

module Culet
  # `require "culet/profile"` makes the memory profile available, which shows the code that allocated the memory in use.
  # Culet::Profile.start, CULET_PROFILE=512k (see Settings) or `culet profile PID` turns the profile on; forked
  # processes continue it. The profile samples Ruby's objects and, on culet's allocator, blocks of malloc.
  #
  # The extension defines:
  # - Culet::Profile.stop: ends sampling; samples are kept until their memory is freed
  # - Culet::Profile.booted: marks the end of the boot, where the view growth begins. Without a call, growth begins at
  #   the fork of a worker or at the first label (a request, a job)
  # - Culet::Profile.running?: whether this process samples
  # - Culet::Profile.sample_bytes: the mean distance of two samples in bytes
  # - Culet::Profile.label(name: value) { }: adds labels to the allocations of the block; nil removes a label
  # - Culet::Profile.labels: the labels in effect, a Hash
  module Profile
    class << self
      # Starts sampling with an empty profile. If the profile is running, only changes the distance of samples.
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
      # @param path [String] the file, of mode 0600, which appears when it is complete
      # @return [String] the path
      # @raise [Culet::Error] when the file cannot be written, or without the native extension; no partial file remains
      def write(path)
        raise Error, Native.missing_reason("culet.so") unless Culet.native?

        AtomicFile.open(path, secret: true) { |io| write_to(io.fileno) }
        path
      end

      # The profile so far, as the document of `culet profile --json`.
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
