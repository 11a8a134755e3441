# frozen_string_literal: true

require_relative "levels"
require_relative "residence"

module Culet
  # The levels of a process whose heap was read page by page.
  #
  # @api private
  class SnapshotLevels
    # A mapping's use => the level of its pages outside every region.
    LEVEL_OF_USE = {
      "malloc" => "malloc_unsplit", "ruby" => "ruby_unsplit",
      "stack" => "stacks", "fiber" => "stacks", "jit" => "jit",
      "library" => "libraries_and_files", "file" => "libraries_and_files", "allocator" => "malloc_metadata"
    }.freeze

    # Largest unexplained share of the resident bytes that needs no remark.
    TOLERANCE = 0.01

    # The title of a mapping without a name.
    ANONYMOUS = "anonymous memory"
    private_constant :LEVEL_OF_USE, :TOLERANCE, :ANONYMOUS

    # @param mapping [Scope::Mapping]
    # @return [String] its title
    def self.title(mapping) = [mapping.label, mapping.path].find { |text| text && !text.empty? } || ANONYMOUS

    attr_reader :snapshot

    def initialize(snapshot)
      @snapshot = snapshot
    end

    # @return [Integer] resident bytes, as the kernel counts them
    def rss_bytes = snapshot.process.rss_bytes

    # @return [Hash{String => Integer}] name => bytes; they add up to `rss_bytes`
    def levels = @levels ||= Levels.complete(rss_bytes, parts)

    # @return [Integer] resident bytes that no level has; negative where levels have more than is resident
    def unexplained_bytes = levels.fetch("unexplained")

    # @return [Boolean] whether hardly anything is unexplained
    def explained? = unexplained_bytes.abs <= TOLERANCE * rss_bytes

    # @return [Array<Array(String, Integer, Integer)>] of the mappings that are in `other`: name, resident bytes, how
    #   many; the largest first
    def others
      others = snapshot.mappings.select { |mapping| level_of(mapping) == "other" }
      rests = others.map do |mapping|
        [snapshot.neighbour?(mapping) ? ANONYMOUS : self.class.title(mapping), residence.rest_bytes(mapping)]
      end
      sums = rests.group_by(&:first).map { |name, list| [name, list.sum(&:last), list.size] }
      sums.reject { |_, bytes,| bytes.zero? }.sort_by { |name, bytes,| [-bytes, name] }
    end

    # @return [String] the level of its pages outside every region
    def level_of(mapping) = LEVEL_OF_USE.fetch(snapshot.rest_use(mapping), "other")

    private

    def residence = @residence ||= Residence.new(snapshot)

    def parts = [ruby, malloc, mappings].reduce { |all, more| all.merge(more) { |_, one, other| one + other } }

    def ruby
      ruby = snapshot.ruby or return {}

      { "ruby_objects" => ruby.live_resident_bytes, "ruby_free_slots" => ruby.free_resident_bytes,
        "ruby_page_overhead" => ruby.overhead_resident_bytes, "ruby_transient" => ruby.transient_resident_bytes }
    end

    def malloc
      malloc = snapshot.malloc
      unless malloc && snapshot.allocator.blocks?
        return { "malloc_unsplit" => residence.malloc_bytes - residence.ruby_in_malloc_bytes }
      end

      { "malloc_used" => malloc.used_resident_bytes - residence.ruby_in_malloc_bytes,
        "malloc_metadata" => malloc.metadata_resident_bytes, "malloc_free" => malloc.free_resident_bytes }
    end

    def mappings
      snapshot.mappings.group_by { |mapping| level_of(mapping) }
              .transform_values { |list| list.sum { |mapping| residence.rest_bytes(mapping) } }
    end
  end
end
