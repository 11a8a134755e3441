# frozen_string_literal: true

require "json"
require_relative "../../system/foreign_json"
require_relative "../../system/shape"
require_relative "own_reading"
require_relative "sites"

module Culet
  module Metrics
    # A process's report of itself, also for the collector: its metrics as packed numbers, and the sites of its
    # profile as JSON.
    class Report
      BYTES = OwnReading::KEYS.size * 8
      SITES = [Shape.tuple(Shape.one_of("culet_profile_site_bytes", "culet_profile_site_info"),
                           Shape.map(Shape::TEXT, Shape::TEXT), Shape::NUMBER)].freeze
      # Versions of Ruby and culet, and the allocator: the same in forked processes.
      INFO = ["culet_process_info",
              { "version" => VERSION, "ruby" => RUBY_VERSION, "ruby_engine" => RUBY_ENGINE,
                "allocator" => Culet.native? ? Culet.allocator[:name] : "unknown" }.freeze, 1].freeze
      private_constant :BYTES, :SITES, :INFO

      # @param message [String] of another process's `message`
      # @return [Array<Array(String, Hash{String => String}, Numeric)>, nil] as of `samples`; nil if the message is
      #   invalid
      def self.parse(message)
        figures = OwnReading.unpack(message.byteslice(0, BYTES)) or return
        rest = message.byteslice(BYTES..)
        return [INFO, *figures] if rest.empty?

        sites = ForeignJson.parse(rest)
        [INFO, *figures, *sites] if Shape.match?(sites, SITES)
      rescue JSON::ParserError
        nil
      end

      def initialize
        @own = OwnReading.new
        @sites = Sites.new
      end

      # @return [Array<Array(String, Hash{String => String}, Numeric)>] name, labels and value
      def samples = [INFO, *@own.samples, *@sites.samples]

      # @return [String]
      def message
        sites = @sites.samples
        sites.empty? ? @own.pack : @own.pack << JSON.generate(sites).b
      end
    end
  end
end
