# frozen_string_literal: true

require_relative "../../text/lines"

module Culet
  module Retain
    # Sizes and classes as the tables write them.
    module Figures
      # Classes of a line.
      FEW = 4
      private_constant :FEW

      private

      # "120,000 String 96.0 MB; 4,000 Page 640 kB"
      def classes(list)
        list.first(FEW).map { |one| "#{number(one.objects)} #{name(one.name)} #{size(one.bytes)}" }.join("; ")
      end

      # @param texts [Array<#to_s>] what is known of a row
      # @return [Array<String>] the lines below it
      def below(*texts)
        texts.map { |text| Text::Lines.printable(text) }.reject(&:empty?)
             .map { |text| Text::Lines.fold("   #{text}", indent: 5) }
      end

      # An object without a class is internal to Ruby.
      def name(class_name) = class_name.empty? ? "(internal)" : Text::Lines.printable(class_name)
    end
  end
end
