# frozen_string_literal: true

module Culet
  module BlackBox
    # The setting CULET_BLACKBOX: the folder that has a file for each process; nothing or 0: no black box.
    #
    # An invalid setting never stops a program: it is reported in `problem`.
    class Settings
      # @return [String, nil] absolute path of the folder; nil: off
      attr_reader :folder

      # @return [String, nil] a sentence if the setting is invalid
      attr_reader :problem

      # @param text [String, nil] the variable's value
      def initialize(text)
        text = text.to_s
        return if ["", "0"].include?(text)

        # The program may change its folder.
        @folder = File.expand_path(text)
      rescue ArgumentError => e # a home folder of a user that does not exist
        @problem = "CULET_BLACKBOX: #{e.message}; there is no black box"
      end
    end
  end
end
