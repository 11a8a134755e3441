# frozen_string_literal: true

require_relative "../../../render/html_page"
require_relative "../../../text/numbers"
require_relative "../../../text/size"
require_relative "table"

module Culet
  module Cow
    module Experiment
      # The document of an experiment as a page without a script.
      class Page < HtmlPage
        FOLDER = __dir__
        # Parts of a process's bar, from left to right: figure, class, title.
        PARTS = [%w[shared_bytes shared shared], %w[private_bytes private private]].freeze
        private_constant :PARTS

        # @param document [Hash] of Engine
        def initialize(document)
          super()
          @document = document
        end

        private

        def variants = @document["results"].group_by { |result| result["variant"] }

        def median(result, figure) = result["summary"][figure]["median"]

        def seconds(result, figure) = Text::Numbers.interval(*interval(result, figure))

        def mega(result, figure)
          Text::Numbers.interval(*interval(result, figure).map { |value| value && value / 1e6 })
        end

        def interval(result, figure) = result["summary"][figure].values_at("median", "low", "high")

        # All bars have the scale of the largest process.
        def widest
          @widest ||= @document["results"].flat_map { |result| %w[parent child].map { |who| width(result, who) } }.max
        end

        def width(result, who) = PARTS.sum { |figure,| median(result, "#{who}_#{figure}") }

        def bar(result, who)
          PARTS.map do |figure, name, words|
            bytes = median(result, "#{who}_#{figure}")
            format('<span class="%s" style="width:%.2f%%" title="%s: %s"></span>',
                   name, 100 * bytes.fdiv([widest, 1].max), words, h(Text::Size.human(bytes)))
          end.join
        end
      end
    end
  end
end
