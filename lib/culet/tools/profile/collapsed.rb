# frozen_string_literal: true

module Culet
  module Profile
    # One line per stack, outermost frame first, and its bytes: the input of flamegraph.pl and many others.
    class Collapsed
      # @param view [Symbol, String] one of VIEWS
      def initialize(data, view: :live)
        @data = data
        @view = view
      end

      # @return [String]
      def to_s
        sums = Hash.new(0)
        @data.sites(@view).each { |site| sums[names(site).join(";")] += site.bytes }
        # Of a difference, what shrank has no place in the format.
        sums.filter_map { |stack, bytes| "#{stack} #{bytes.round}\n" if bytes.round.positive? }.join
      end

      private

      def names(site) = [*site.frames.reverse.map(&:to_s), site.class_name].compact.map { |name| clean(name) }

      def clean(name)
        name.gsub(/(?:;|[[:space:]]|[[:cntrl:]])+/, " ").strip.then { |text| text.empty? ? "?" : text.tr(" ", "_") }
      end
    end
  end
end
