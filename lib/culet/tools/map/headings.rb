# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Map
    # Headings of the sections.
    module Headings
      module_function

      # @param group [Group]
      # @param resident_bytes [Integer] of the group
      # @return [String] title and figures
      def text(group, resident_bytes)
        arena = group.arena
        parts = ["#{group.title}: #{Text::Size.human(resident_bytes)} resident"]
        parts << "#{Text::Size.human(arena.used_bytes)} in use, resident or not" if arena
        parts << "broken" if arena&.broken
        parts.join(", ")
      end
    end
  end
end
