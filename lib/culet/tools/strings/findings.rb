# frozen_string_literal: true

require "forwardable"
require_relative "../../model/origin"
require_relative "group"

module Culet
  module Strings
    # The results of the analysis.
    class Findings
      extend Forwardable

      def_delegator :all, :count, :strings
      def_delegator :all, :held_bytes, :string_bytes
      alias total_bytes string_bytes
      def_delegators :all, :asked_bytes, :slot_slack_bytes, :capacity_slack_bytes

      TITLES = { "embedded" => "embedded", "own" => "own buffer", "shared" => "shared buffer",
                 "nofree" => "static, never freed" }.freeze
      private_constant :TITLES

      # Sums over strings. asked_bytes: of text, where the length is known; buffer_bytes: memory outside the slot;
      # slack: bytes without text.
      Sum = Struct.new(:count, :asked_bytes, :slot_bytes, :buffer_bytes, :slot_slack_bytes, :capacity_slack_bytes,
                       keyword_init: true) do
        # @return [Integer] bytes of slots and buffers
        def held_bytes = slot_bytes + buffer_bytes
      end

      # Sums over the strings of one gem, file or line.
      Place = Struct.new(:name, :strings, :held_bytes, :copies, :gain_bytes, keyword_init: true)

      # A buffer shared by strings. owner: nil where it was not read.
      Root = Struct.new(:count, :owner, keyword_init: true)

      # @return [Hash{String => Sum}] by storage: "embedded", "own", "shared", "nofree"
      attr_reader :places

      # @return [Sum] all strings
      attr_reader :all

      # @return [Sum] interned strings
      attr_reader :interned

      # @return [Sum]
      attr_reader :frozen

      # @return [Sum] strings whose buffers others share
      attr_reader :roots

      # @return [Sum] strings of unknown content: a dump omits contents of binary and shared strings
      attr_reader :untold

      # @return [Array<Root>] most strings first
      attr_reader :shared_with

      # @return [Dump, Live] the source
      attr_reader :source

      # @param result [Hash{Symbol => Object}] from the extension
      # @param names [Hash{Integer => String}] of allocation sites
      # @param source [Dump, Live]
      def initialize(result, names, source:)
        @result = result
        @names = names
        @source = source
        @places = result[:places].to_h { |name, sum| [name.to_s, Sum.new(**sum)] }
        @all = Sum.new(**Sum.members.to_h { |key| [key, places.values.sum(&key)] })
        @interned, @frozen, @roots, @untold =
          result.values_at(:interned, :frozen, :roots, :untold).map { |sum| Sum.new(**sum) }
        @shared_with = result[:shared_with].map do |count, owner|
          Root.new(count: count, owner: owner && Sample.new(owner))
        end
      end

      # @return [Array<Array(String, Sum)>] with titles
      def sums
        [*places.transform_keys(TITLES).to_a, ["all", all], ["of which interned", interned], ["frozen", frozen],
         ["shared roots", roots], ["unknown content", untold]]
      end

      # @return [Integer] equal strings beyond the first
      def copies = @result[:duplicates][:strings]

      # @return [Integer] bytes that deduplication would save
      def duplicate_bytes = @result[:duplicates][:gain_bytes]

      # @return [Integer] strings that could lie in the buffer of another, once equal ones are one
      def suffixes = @result[:suffixes][:strings]

      # @return [Integer] bytes that would go away if they did
      def suffix_bytes = @result[:suffixes][:gain_bytes]

      # @return [Integer] bytes that sharing could free, of either sort
      def shareable_bytes = duplicate_bytes + suffix_bytes

      # @return [Integer] groups of both kinds
      def group_count = duplicate_groups + suffix_groups

      # @return [Integer] groups of equal strings
      def duplicate_groups = @result[:duplicates][:groups]

      # @return [Integer] strings with suffixes among the others
      def suffix_groups = @result[:suffixes][:groups]

      # @return [Array<Group>] the largest gains first
      def groups
        @groups ||= { "duplicate" => :duplicates, "suffix" => :suffixes }
                    .flat_map { |kind, key| @result[key][:largest].map { |fields| Group.new(kind, fields, @names) } }
                    .select { |group| group.gain_bytes.positive? }
                    .sort_by.with_index { |group, index| [-group.gain_bytes, index] }
      end

      # @return [Boolean] whether allocation sites are known
      def sites? = @names.any?

      # @return [Array<Place>] by gem, the largest gains first
      def gems = @gems ||= gather { |site| Origin.of(site) }

      # @return [Array<Place>] by file
      def files = @files ||= gather { |site| site.sub(/:\d+\z/, "") }

      # @return [Array<Place>] by file and line
      def lines = @lines ||= gather(&:itself)

      private

      def gather
        found = Hash.new do |places, name|
          places[name] = Place.new(name: name, strings: 0, held_bytes: 0, copies: 0, gain_bytes: 0)
        end
        @result[:sites].each do |site, figures|
          place = found[yield(@names.fetch(site, "unknown"))]
          %i[strings held_bytes copies gain_bytes].zip(figures) { |key, figure| place[key] += figure }
        end
        found.values.sort_by { |place| [-place.gain_bytes, -place.held_bytes, place.name] }
      end
    end
  end
end
