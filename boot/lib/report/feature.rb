# frozen_string_literal: true

module Culet
  module Boot
    # The cost of a file: its time and counts.
    #
    # seconds; cpu_seconds: of the processor; objects: made; object_bytes: of their slots; mallocs: requests for memory;
    # malloc_bytes: what they asked for; paths: file-system calls that name a path; failed_paths: those of them that
    # failed.
    Cost = Struct.new(:seconds, :cpu_seconds, :objects, :object_bytes, :mallocs, :malloc_bytes,
                      :paths, :failed_paths) do
      # @return [Cost] all zero
      def self.none = new(0.0, 0.0, 0, 0, 0, 0, 0, 0)

      # @param list [Array<Numeric>, nil] as the recorder writes them
      # @raise [TypeError, ArgumentError] when it is something else
      def self.read(list)
        list = Array(list)
        raise ArgumentError, "#{list.size} figures" unless list.size == members.size

        new(*list.first(2).map { |value| sound(Float(value)) }, *list.drop(2).map { |value| sound(Integer(value)) })
      end

      # @param value [Numeric]
      # @return [Numeric] itself
      # @raise [ArgumentError] when nothing can have taken so much, or it is below zero
      def self.sound(value)
        return value if value.between?(0, 1 << 56)

        raise ArgumentError, "a figure in it cannot be"
      end

      # @param other [Cost]
      # @return [Cost]
      def +(other) = self.class.new(*to_a.zip(other.to_a).map(&:sum))

      # Figures of threads that work at the same time can overlap: nothing is below zero.
      def -(other) = self.class.new(*to_a.zip(other.to_a).map { |mine, its| [mine - its, mine * 0].max })
    end

    # A required file, or a failed require.
    class Feature
      # The label of one whose name Ruby did not tell.
      UNNAMED = "unnamed file"
      # @return [Integer]
      attr_reader :id
      # @return [Feature, nil] the requirer
      attr_reader :up
      # @return [Integer] features above it
      attr_reader :depth
      # @return [Array<Feature>] required features, in order
      attr_reader :children
      # @return [String] "require", "require_relative", "load", "program" (the script of the process), "C code", or
      #   "inherited" for a require under way at the fork
      attr_reader :how
      # @return [Float] start, in seconds since the start of the recording
      attr_reader :at
      # @return [String, nil] the argument of require
      attr_accessor :name
      # @return [String, nil] the file
      attr_accessor :path
      # @return [Cost] from start to end, with required files
      attr_accessor :total
      # @return [Cost, nil] from start to the end of compilation; nil without a file to compile
      attr_accessor :until_compiled
      # @return [true, String, nil] true; the class of the raised error; "left" for a throw; nil without an
      #   end
      attr_accessor :result
      # @return [Integer] retained objects of this file alone, and their bytes
      attr_accessor :retained_objects, :retained_bytes
      # @return [Integer] bytes of its compiled code at the end
      attr_accessor :code_bytes
      # @return [Integer] requires of loaded features
      attr_reader :repeats
      # @return [Float] time of these requires
      attr_reader :repeated_seconds

      def initialize(id:, up:, how:, name:, at:)
        @id = id
        @up = up
        @depth = up ? up.depth + 1 : 0
        @how = how
        @name = name
        @at = at
        @children = []
        @total = Cost.none
        @retained_objects = @retained_bytes = @code_bytes = @repeats = 0
        @repeated_seconds = 0.0
        @before_compiled = Cost.none
      end

      # Records the end of compilation: the cost of children up to here belongs to the lookup.
      #
      # @param path [String] the file
      # @param figures [Cost, nil] figures so far; nil without a file to compile
      def compiled(path, figures)
        @path = path
        @until_compiled = figures
        @before_compiled = children_total
      end

      # Removes a child that was a require of a loaded feature.
      def repeat(child)
        # Mostly the last one.
        @children.delete_at(@children.rindex { |one| one.equal?(child) })
        @repeats += 1
        @repeated_seconds += child.total.seconds
      end

      # @return [Cost] without required files
      def own = total - children_total

      # The cost of finding, reading and compiling the file; all of its own cost without a file to compile.
      #
      # @return [Cost]
      def finding = until_compiled ? until_compiled - @before_compiled : own

      # @return [Array<Feature>] itself and all descendants, in order
      def all = [self, *children.flat_map(&:all)]

      private

      def children_total = children.map(&:total).reduce(Cost.none, :+)
    end
  end
end
