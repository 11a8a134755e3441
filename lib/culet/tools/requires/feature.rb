# frozen_string_literal: true

require_relative "figures"

module Culet
  module Requires
    # One file that was required, or one attempt at it that failed.
    class Feature
      # @return [Integer]
      attr_reader :id
      # @return [Feature, nil] what required it
      attr_reader :up
      # @return [Array<Feature>] what it required, in order
      attr_reader :children
      # @return [String] "require", "require_relative"../../requires/, "load", "program" (what Ruby was started with), "C code" or "inherited": under way when the process was forked
      attr_reader :how
      # @return [Float] when it began, seconds since the recording did
      attr_reader :at
      # @return [String, nil] what was asked for
      attr_accessor :name
      # @return [String, nil] the file that was found
      attr_accessor :path
      # @return [Figures] of all that happened until its end, what it required included
      attr_accessor :total
      # @return [Figures, nil] the same until its file had been found, read and compiled; nil: there was none to compile
      attr_accessor :until_compiled
      # @return [true, String, nil] true; or the class of the error it ended with, "left" when it was left otherwise; nil:
      #   it did not end
      attr_accessor :result
      # @return [Integer] objects made by it alone that were there at the end, and what they held
      attr_accessor :retained_objects, :retained_bytes
      # @return [Integer] bytes of its compiled code that were there at the end
      attr_accessor :code_bytes
      # @return [Integer] how often it asked for what was loaded already
      attr_reader :repeats
      # @return [Float] how long that took
      attr_reader :repeated_seconds

      def initialize(id:, up:, how:, name:, at:)
        @id = id
        @up = up
        @how = how
        @name = name
        @at = at
        @children = []
        @total = Figures.none
        @retained_objects = @retained_bytes = @code_bytes = @repeats = 0
        @repeated_seconds = 0.0
        @before_compiled = Figures.none
      end

      # Its file has been found and compiled now: what its children took until here belongs to the search.
      #
      # @param path [String] the file
      # @param figures [Figures, nil] of all until then; nil: there was none to compile
      def compiled(path, figures)
        @path = path
        @until_compiled = figures
        @before_compiled = children_total
      end

      # One of its children turned out to be loaded already.
      def repeat(child)
        @children.delete(child)
        @repeats += 1
        @repeated_seconds += child.total.seconds
      end

      # @return [Figures] without what it required
      def own = total - children_total

      # What it took to find the file, read and compile it; all of its own where there was nothing to compile.
      #
      # @return [Figures]
      def finding = until_compiled ? until_compiled - @before_compiled : own

      # @return [Array<Feature>] itself and all below it, in order
      def all = [self, *children.flat_map(&:all)]

      # @return [String] what it is called where there is little room
      def title = (path || name || "?").to_s

      private

      def children_total = children.map(&:total).reduce(Figures.none, :+)
    end
  end
end
