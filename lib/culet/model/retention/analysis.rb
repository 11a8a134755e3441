# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/shape"
require_relative "holder"

module Culet
  # Retention: the holders of the memory of a Ruby process.
  module Retention
    # The result of a walk over all objects of a process or a dump (ext/culet/retain/DESIGN.md). It comes from
    # another process, so it is checked here, once.
    class Analysis
      ADDRESS = Shape.nullable(Shape::TEXT)
      STEPS = [{ "edge" => Shape::TEXT, "class" => Shape::TEXT, "address" => ADDRESS,
                 "bytes" => Shape.optional(Shape::COUNT) }].freeze
      INSTANCES = [Shape.tuple(Shape::TEXT, Shape::COUNT, Shape::COUNT)].freeze
      HOLDER = { "id" => Shape::COUNT, "kind" => Shape.one_of(*Holder::KINDS.keys), "name" => Shape::TEXT,
                 "file" => Shape.nullable(Shape::TEXT), "line" => Shape.nullable(Shape::COUNT), "address" => ADDRESS,
                 "class" => Shape.nullable(Shape::TEXT), "bytes" => Shape::COUNT, "objects" => Shape::COUNT,
                 "classes" => INSTANCES, "path" => STEPS }.freeze
      SET = { "holders" => [Shape::COUNT], "bytes" => Shape::COUNT, "objects" => Shape::COUNT, "classes" => INSTANCES,
              "paths" => [STEPS] }.freeze
      OF_CLASS = { "class" => Shape::TEXT, "objects" => Shape::COUNT, "bytes" => Shape::COUNT,
                   "holders" => [Shape.tuple(Shape::INTEGER, Shape::COUNT, Shape::COUNT)], "paths" => [STEPS] }.freeze
      OF_OBJECT = { "address" => ADDRESS, "class" => Shape::TEXT, "bytes" => Shape::COUNT,
                    "retained_bytes" => Shape::COUNT, "holders" => [Shape::INTEGER], "paths" => [STEPS] }.freeze
      DUPLICATES = [{ "length" => Shape::COUNT, "copies" => Shape::COUNT, "bytes" => Shape::COUNT,
                      "holders" => [Shape::INTEGER], "content" => Shape.nullable(Shape::TEXT) }].freeze
      # The holders of the samples of a profile. A site: kind, stack, label and type as in the profile's stream, bytes;
      # the holders that keep most of it: id, samples, bytes, a list of one path.
      SAMPLES = { "started_ns" => Shape::ANY, "generation" => Shape::COUNT,
                  "sites" => [Shape.tuple(Shape.one_of("m", "o"), Shape::COUNT, Shape::COUNT, Shape::COUNT,
                                          Shape::COUNT, [Shape.tuple(Shape.nullable(Shape::INTEGER), Shape::COUNT,
                                                                     Shape::COUNT, [STEPS])])] }.freeze
      # id, parent's id, edge, class, address, its own bytes, retained bytes, objects
      NODE = Shape.tuple(Shape::COUNT, Shape.nullable(Shape::COUNT), Shape::TEXT, Shape::TEXT, ADDRESS, Shape::COUNT,
                         Shape::COUNT, Shape::COUNT)
      SHAPE = { "version" => 1, "pid" => Shape.nullable(Shape::COUNT), "ruby" => Shape.nullable(Shape::TEXT),
                "source" => Shape.one_of("process", "dump"), "cpu_seconds" => Shape::SECONDS,
                "peak_bytes" => Shape::COUNT, "fork_seconds" => Shape::SECONDS, "objects" => Shape::COUNT,
                "slot_bytes" => Shape::COUNT, "malloc_bytes" => Shape::COUNT, "total_bytes" => Shape::COUNT,
                "unreachable_objects" => Shape::COUNT, "unreachable_bytes" => Shape::COUNT,
                "malloc_in_use_bytes" => Shape.optional(Shape.nullable(Shape::COUNT)),
                "native_bytes" => Shape.optional(Shape.nullable(Shape::INTEGER)),
                "holders" => [HOLDER],
                "other_holders" => { "holders" => Shape::COUNT, "objects" => Shape::COUNT, "bytes" => Shape::COUNT },
                "sets" => [SET],
                "other_sets" => { "sets" => Shape::COUNT, "objects" => Shape::COUNT, "bytes" => Shape::COUNT },
                "classes" => INSTANCES, "tree" => [NODE],
                "samples" => Shape.optional(SAMPLES),
                "selected" => Shape.optional(Shape.nullable(Shape.either(OF_CLASS, OF_OBJECT))),
                "duplicates" => Shape.optional(Shape.nullable(DUPLICATES)) }.freeze
      # Lists that are longer were not made by culet.
      MOST = { "holders" => 1_000, "sets" => 500, "classes" => 5_000, "tree" => 30_000, "duplicates" => 10_000 }.freeze
      # Steps of a path; those that are printed are fewer.
      MOST_STEPS = 100_000
      private_constant :ADDRESS, :STEPS, :INSTANCES, :HOLDER, :SET, :OF_CLASS, :OF_OBJECT, :DUPLICATES, :SAMPLES, :NODE,
                       :MOST, :MOST_STEPS

      # Holders and sets beyond the listed ones, added up.
      Rest = Struct.new(:count, :objects, :bytes)
      # Instances of one class: which holders and sets keep them.
      OfClass = Struct.new(:name, :objects, :bytes, :keepers, :paths)
      # One object and what keeps it.
      OfObject = Struct.new(:address, :name, :bytes, :retained_bytes, :keepers, :paths)
      # A holder or a set with what it keeps of something.
      Kept = Struct.new(:keeper, :objects, :bytes)
      # The samples of a site of the profile. key: kind, stack, label and type as of Profile::Recording::RawSite;
      # kept: the largest holders.
      SampledSite = Struct.new(:key, :bytes, :kept)
      # keeper: nil for a holder beyond the listed ones. path: to one of the samples.
      KeptSample = Struct.new(:keeper, :bytes, :path)
      # Equal Strings. content: nil where it was not requested.
      Duplicate = Struct.new(:length, :copies, :bytes, :keepers, :content)
      # An object in the tree of dominators: what it retains is free once it is. Those without a parent are the holders
      # and sets themselves.
      Node = Struct.new(:id, :parent, :edge, :class_name, :address, :own_bytes, :bytes, :objects)

      # @return [String] the process or the file
      attr_reader :name

      # @return [Array<Holder>] the largest first
      attr_reader :holders

      # @return [Array<HolderSet>] the largest first
      attr_reader :sets

      # @param document [Object] as JSON.parse returned it
      # @param name [String] of the process or the file
      # @raise [Culet::Error] when it is damaged
      def initialize(document, name:)
        @document = Shape.check(document, SHAPE, name: "the analysis of #{name}")
        @name = name
        check_lengths
        @holders = document["holders"].map { |fields| Holder.new(fields) }
        @by_id = @holders.to_h { |one| [one.id, one] }
        @sets = document["sets"].map { |fields| HolderSet.new(fields, @by_id) }
        check_sums
        check_tree
      end

      # @return [Integer, nil] of a process
      def pid = (@document["pid"] unless dump?)

      # @return [Boolean] whether it is of a file
      def dump? = @document["source"] == "dump"

      # @return [Float] of the walk
      def cpu_seconds = @document["cpu_seconds"].to_f

      # @return [Float] for which the process stood still, to be copied; 0 for a dump
      def fork_seconds = @document["fork_seconds"].to_f

      # ruby: "3.4.1", or nil; peak_bytes: memory of the walk; objects: reachable ones; slot_bytes: their slots;
      # malloc_bytes: what they have of malloc, as Ruby's memsize says; total_bytes: the sum of both, and of all holders
      # and sets; unreachable: what the next collection frees. malloc_in_use_bytes: what malloc has in use;
      # native_bytes: of these, without the blocks of objects: up to a constant, what native code has; both nil for a
      # dump, or under a malloc that does not tell.
      %w[ruby peak_bytes objects slot_bytes malloc_bytes total_bytes unreachable_objects unreachable_bytes
         malloc_in_use_bytes native_bytes].each { |key| define_method(key) { @document[key] } }

      # @return [Rest]
      def other_holders
        @other_holders ||= Rest.new(*@document["other_holders"].values_at("holders", "objects", "bytes"))
      end

      # @return [Rest]
      def other_sets = @other_sets ||= Rest.new(*@document["other_sets"].values_at("sets", "objects", "bytes"))

      # @return [Array<Instances>] all classes, the largest first
      def classes = @classes ||= @document["classes"].map { |row| Instances.new(*row) }

      # @return [OfClass, OfObject, nil] what was asked for
      def selected
        fields = @document["selected"] or return
        paths = fields["paths"].map { |steps| Path.new(steps) }
        if fields.key?("retained_bytes")
          return OfObject.new(*fields.values_at("address", "class", "bytes", "retained_bytes"),
                              keepers(fields["holders"]), paths)
        end

        kept = fields["holders"].filter_map { |id, *sums| Kept.new(keeper(id), *sums) if keeper(id) }
        OfClass.new(*fields.values_at("class", "objects", "bytes"), kept, paths)
      end

      # @return [Boolean] whether it has the samples of that profile
      def samples_of?(recording)
        found = @document["samples"] or return false
        started = recording.started_at.then { |at| (at.to_i * 1_000_000_000) + at.nsec }
        [pid, *found.values_at("started_ns", "generation")] == [recording.pid, started, recording.generation]
      end

      # @return [Array<SampledSite>] those with the most bytes, the largest first; empty where they were not requested
      def sampled_sites
        @sampled_sites ||= (@document.dig("samples", "sites") || []).map do |kind, *key, bytes, kept|
          SampledSite.new([kind == "o" ? :object : :malloc, *key], bytes, kept.map { |one| kept_sample(*one) })
        end
      end

      # @return [Array<Duplicate>, nil] nil where they were not requested
      def duplicates
        @document["duplicates"]&.map do |one|
          Duplicate.new(*one.values_at("length", "copies", "bytes"), keepers(one["holders"]), one["content"])
        end
      end

      # @return [Array<Node>] parents first
      def tree = @tree ||= @document["tree"].map { |row| Node.new(*row) }

      # @param id [Integer] of a holder, or -1 less the index of a set
      # @return [Holder, HolderSet, nil] nil: beyond the listed ones
      def keeper(id) = id.negative? ? @sets[-1 - id] : @by_id[id]

      # @param node [Node] without a parent
      # @return [Holder, HolderSet, nil]
      def keeper_of(node) = node.id < @holders.size ? @by_id[node.id] : @sets[node.id - @holders.size]

      private

      def kept_sample(id, _, bytes, paths) = KeptSample.new(id && keeper(id), bytes, Path.new(paths.first || []))

      def keepers(ids) = ids.filter_map { |id| keeper(id) }

      def check_lengths
        MOST.each { |key, most| damaged("#{key} has more than #{most} rows") if Array(@document[key]).size > most }
        paths = [*@document["holders"].map { |one| one["path"] }, *@document["sets"].flat_map { |one| one["paths"] },
                 *@document.dig("samples", "sites")&.flat_map { |site| site.last.flat_map(&:last) }]
        damaged("its paths are too long") if paths.sum(&:size) > MOST_STEPS
      end

      def check_sums
        damaged("two holders have one number") if @by_id.size < @holders.size
        parts = [*@holders, *@sets, other_holders, other_sets]
        return if parts.sum(&:bytes) == total_bytes && slot_bytes + malloc_bytes == total_bytes

        damaged("its holders do not add up to the total")
      end

      def check_tree
        seen = {}
        @document["tree"].each do |id, parent, *|
          damaged("its tree is not in order") if seen.key?(id) || !(parent.nil? || seen.key?(parent))
          seen[id] = true
        end
      end

      def damaged(why) = raise(Error, "the analysis of #{name} is damaged: #{why}")
    end
  end
end
