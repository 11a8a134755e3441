# frozen_string_literal: true

module Culet
  module BlackBox
    # The settings CULET_BLACKBOX: the folder with a file for each process; empty or 0: no black box; and
    # CULET_BLACKBOX_LOOKS: minimum seconds between two analyses of retention; 0: none.
    #
    # An invalid setting never stops a program: `problem` has a sentence.
    class Settings
      LOOK_SECONDS = 60

      # @return [String, nil] absolute path of the folder; nil: off
      attr_reader :folder

      # @return [Integer]
      attr_reader :look_seconds

      # @return [String, nil] a sentence if a setting is invalid
      attr_reader :problem

      # @param text [String, nil] the value of CULET_BLACKBOX
      # @param looks [String, nil] the value of CULET_BLACKBOX_LOOKS
      def initialize(text, looks = nil)
        text = text.to_s
        @look_seconds = seconds(looks.to_s.scrub("?"))
        return if ["", "0"].include?(text)

        # An absolute path, because the program may change its working directory.
        @folder = File.expand_path(text)
      rescue ArgumentError, SystemCallError => e # a home folder of nobody, or the program's folder was removed
        @problem = "CULET_BLACKBOX: #{e.message}; there is no black box"
      end

      private

      def seconds(text)
        return LOOK_SECONDS if text.empty?
        return Integer(text, 10) if text.match?(/\A\d{1,6}\z/)

        @problem = "CULET_BLACKBOX_LOOKS takes seconds, e.g. 300, or 0; looks are taken every #{LOOK_SECONDS} s at most"
        LOOK_SECONDS
      end
    end
  end
end
