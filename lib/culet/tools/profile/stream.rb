# frozen_string_literal: true

require_relative "../../errors"
require_relative "recording"

module Culet
  module Profile
    # Largest stream accepted, in bytes.
    STREAM_BYTES = 256 << 20

    # The text that one process wrote (profile/profile.h), and where it is from.
    #
    #   state      :running   the process ran on
    #              :exited    it wrote the stream at its end
    #              :replaced  it wrote the stream before exec
    #              :ended     it has ended since, and was not asked again
    #              nil        not known: from a file
    #   ended_at   of :ended, the time when that was noticed
    Stream = Struct.new(:source, :pid, :text, :state, :ended_at) do
      # @param path [String] a file of `culet profile --save` or Culet::Profile.write
      # @return [Stream] without a process number
      # @raise [Culet::Error] when the file cannot be read
      def self.load(path)
        raise Error, "#{path} is a directory; name a file in it" if File.directory?(path)

        text = File.open(path, "rb") { |file| file.read(STREAM_BYTES + 1) }.to_s
        raise Error, "#{path} is too large for a profile" if text.bytesize > STREAM_BYTES

        new(path, nil, text)
      rescue SystemCallError => e
        raise Error, "cannot read #{path}: #{e.message.sub(/ @ .*/, "")}"
      end

      # @return [Recording]
      # @raise [Culet::Error] when it is damaged
      def recording = Recording.parse(text, name: source, state: state, ended_at: ended_at)

      # @return [Array<String>, nil] what tells the profile of a process from a later one, of the same number or of its
      #   own
      def identity = text.match(/^P (\d+) \d+ (\d+) \d+ \d+ (\d+) /n)&.captures
    end
  end
end
