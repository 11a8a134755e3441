# frozen_string_literal: true

require_relative "../../errors"
require_relative "recording"

module Culet
  module Profile
    # The text that one process wrote (profile/profile.h), and where it is from.
    Stream = Struct.new(:source, :pid, :text) do
      # @return [Recording]
      # @raise [Culet::Error] when it is damaged
      def recording = Recording.parse(text, name: source)
    end
  end
end
