# frozen_string_literal: true

require_relative "../errors"

module Culet
  module Allocators
    # The words of LD_PRELOAD. The loader takes spaces and colons as separators (ld.so(8)).
    class Preload
      # @param text [String, nil] LD_PRELOAD as it is
      def initialize(text)
        @libraries = text.to_s.split(/[\s:]+/).reject(&:empty?)
      end

      # @return [Array<String>] the libraries, in the loader's order
      attr_reader :libraries

      # @param library [String, nil] an allocator that comes first; nil for none
      # @return [String, nil] the new LD_PRELOAD: no other allocator of the catalogue, the user's own libraries kept;
      #   nil when nothing is left
      # @raise [Culet::Error] when the library's path cannot be written in LD_PRELOAD
      def with(library)
        if library&.match?(/[\s:]/)
          raise Error, "#{library} cannot be preloaded, because the loader takes spaces and colons in LD_PRELOAD as " \
                       "separators; put it where the path has none"
        end

        kept = libraries.reject { |path| path == library || Allocators.of_library(path) }
        words = [*library, *kept]
        words.empty? ? nil : words.join(":")
      end
    end
  end
end
