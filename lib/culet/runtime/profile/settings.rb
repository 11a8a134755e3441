# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Profile
    # The settings in CULET_PROFILE and CULET_PROFILE_OUT:
    #
    # - CULET_PROFILE: mean distance of two samples (bytes, or with k, m or g); 1: the default; 0 or nothing: off
    # - CULET_PROFILE_OUT: file or folder that receives the stream of each process when it ends
    #
    # An invalid setting never stops a program: `problem` has a sentence, and the profile stays off.
    class Settings
      # Mean distance of two samples in bytes.
      DEFAULT_BYTES = 512 << 10
      # Largest mean distance in bytes.
      MAX_BYTES = 1 << 40
      # Sizes that the allocator also accepts.
      SIZE = /\A\d{1,13}[kmg]?\z/i
      private_constant :SIZE

      # @return [Integer, nil] mean distance of two samples in bytes; nil: off
      attr_reader :sample_bytes

      # @return [String, nil] a sentence if the setting is invalid
      attr_reader :problem

      # @param text [String, nil] the value of CULET_PROFILE
      # @param out [String, nil] the value of CULET_PROFILE_OUT
      def initialize(text, out = nil)
        @out = out
        parse(text.to_s.scrub("?").strip)
      end

      # The file to which this process writes its stream.
      #
      # @param forked [Boolean] whether another process had these settings first
      # @return [String, nil] path of the file: %p replaced by the process number; in a folder, the process number; with
      #   neither, the number is appended to the name of a forked process's file. nil: nowhere
      def file(forked: false)
        return if @out.to_s.empty?
        return @out.gsub("%p", ::Process.pid.to_s) if @out.include?("%p")
        return File.join(@out, ::Process.pid.to_s) if File.directory?(@out)

        forked ? "#{@out}.#{::Process.pid}" : @out
      end

      private

      def parse(text)
        return if ["", "0"].include?(text)

        bytes = (Text::Size.parse(text) if SIZE.match?(text)).to_i
        return @sample_bytes = bytes == 1 ? DEFAULT_BYTES : bytes if bytes.between?(1, MAX_BYTES)

        @problem = "CULET_PROFILE: '#{text}' is not a size such as 512k or 1m; the memory profile is off"
      end
    end
  end
end
