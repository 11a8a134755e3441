# frozen_string_literal: true

require_relative "../requires/origin"
require_relative "group"

module Culet
  module Strings
    # What the analysis found.
    class Findings
      # Strings of one sort: bytes of text, of slots, of buffers and what else lies beside the slot, and of both that no text fills.
      Sum = Struct.new(:count, :asked_bytes, :slot_bytes, :buffer_bytes, :slot_slack_bytes, :capacity_slack_bytes, keyword_init: true) do
        # @return [Integer] bytes that they hold
        def held_bytes = slot_bytes + buffer_bytes
      end

      # What the strings that one gem or file allocated come to.
      Place = Struct.new(:name, :strings, :held_bytes, :copies, :gain_bytes, keyword_init: true)

      # A buffer that strings lie in besides the one that owns it. owner: nil where it was not among the strings told.
      Root = Struct.new(:count, :owner, keyword_init: true)

      # @return [Hash{String => Sum}] by where their bytes lie: "embedded", "own", "shared", "nofree"
      attr_reader :places

      # @return [Sum] those in Ruby's table
      attr_reader :interned

      # @return [Sum]
      attr_reader :frozen

      # @return [Sum] those that others lie in
      attr_reader :roots

      # @return [Sum] those of which the content is not known: a dump has none of what is no text, or shared
      attr_reader :untold

      # @return [Array<Root>] most strings first
      attr_reader :shared_with

      # @return [Dump, Live, Command] where they come from
      attr_reader :source

      # @param result [Hash{Symbol => Object}] what the extension says
      # @param names [Hash{Integer => String}] of allocation sites
      # @param source [Dump, Live, Command]
      def initialize(result, names, source:)
        @result = result
        @names = names
        @source = source
        @places = result[:places].to_h { |name, sum| [name.to_s, Sum.new(**sum)] }
        @interned, @frozen, @roots, @untold = result.values_at(:interned, :frozen, :roots, :untold).map { |sum| Sum.new(**sum) }
        @shared_with = result[:shared_with].map { |count, owner| Root.new(count: count, owner: owner && Sample.new(owner)) }
      end

      # @return [Integer]
      def strings = places.values.sum(&:count)

      # @return [Integer] bytes that they hold
      def string_bytes = places.values.sum(&:held_bytes)

      # @return [Integer] bytes of text, where the length is known
      def asked_bytes = places.values.sum(&:asked_bytes)

      # @return [Integer] bytes of slots that no text fills
      def slot_slack_bytes = places.values.sum(&:slot_slack_bytes)

      # @return [Integer] bytes of buffers that no text fills
      def capacity_slack_bytes = places.values.sum(&:capacity_slack_bytes)

      # @return [Integer] strings beyond the first of each content
      def copies = @result[:duplicates][:strings]

      # @return [Integer] bytes that would go away if equal strings were one
      def duplicate_bytes = @result[:duplicates][:gain_bytes]

      # @return [Integer] strings that could lie in the buffer of another, once equal ones are one
      def suffixes = @result[:suffixes][:strings]

      # @return [Integer] bytes that would go away if they did
      def suffix_bytes = @result[:suffixes][:gain_bytes]

      # @return [Integer] bytes that sharing could free, of either sort
      def shareable_bytes = duplicate_bytes + suffix_bytes

      # @return [Integer] groups of either sort, however many are told
      def group_count = duplicate_groups + suffix_groups

      # @return [Integer] groups of equal strings, however many are told
      def duplicate_groups = @result[:duplicates][:groups]

      # @return [Integer] strings that others end like, however many are told
      def suffix_groups = @result[:suffixes][:groups]

      # @return [Array<Group>] the largest gains first
      def groups
        @groups ||= { "duplicate" => :duplicates, "suffix" => :suffixes }
                    .flat_map { |kind, key| @result[key][:largest].map { |fields| Group.new(kind, fields, @names) } }
                    .select { |group| group.gain_bytes.positive? }.sort_by.with_index { |group, index| [-group.gain_bytes, index] }
      end

      # @return [Boolean] whether it is known who allocated strings
      def sites? = @names.any?

      # @return [Array<Place>] by gem, the largest gains first
      def gems = @gems ||= gather { |site| Requires::Origin.of(site) }

      # @return [Array<Place>] by file
      def files = @files ||= gather { |site| site.sub(/:\d+\z/, "") }

      # @return [Array<Place>] by file and line
      def lines = @lines ||= gather(&:itself)

      private

      def gather
        found = Hash.new { |places, name| places[name] = Place.new(name: name, strings: 0, held_bytes: 0, copies: 0, gain_bytes: 0) }
        @result[:sites].each do |site, figures|
          place = found[yield(@names.fetch(site, "unknown"))]
          %i[strings held_bytes copies gain_bytes].zip(figures) { |key, figure| place[key] += figure }
        end
        found.values.sort_by { |place| [-place.gain_bytes, -place.held_bytes, place.name] }
      end
    end
  end
end
