# frozen_string_literal: true

module Culet
  module Map
    # Encodes numbers as LEB128 (DWARF 5, section 7.6).
    module Binary
      module_function

      # @param out [String] appended to
      # @param numbers [Array<Integer>] not negative
      def varints(out, *numbers)
        numbers.each do |number|
          while number > 0x7f
            out << ((number & 0x7f) | 0x80)
            number >>= 7
          end
          out << number
        end
      end
    end
  end
end
