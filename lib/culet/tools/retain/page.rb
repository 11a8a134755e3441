# frozen_string_literal: true

require_relative "../../render/html_page"
require_relative "page_data"

module Culet
  module Retain
    # Retention of one process or dump, as a page.
    class Html < HtmlPage
      FOLDER = File.expand_path("page", __dir__)
      SCRIPTS = [*EXPLORING, "heap", "main"].freeze

      def initialize(analysis)
        super()
        @analysis = analysis
      end

      private

      attr_reader :analysis

      def title = "Memory retained in #{analysis.name}"

      def lead
        "#{count(analysis.objects, "object")}: #{size(analysis.slot_bytes)} in Ruby's slots and " \
          "#{size(analysis.malloc_bytes)} of malloc. Each byte counts once: for the holder without which it would be " \
          "free, or for the set of holders that keep it together."
      end
    end
  end
end
