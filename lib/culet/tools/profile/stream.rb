# frozen_string_literal: true

require_relative "../../system/input_file"
require_relative "recording"

module Culet
  module Profile
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
        new(path, nil, InputFile.read(path, what: "a file of `culet profile --save`", most_bytes: STREAM_BYTES))
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
