# frozen_string_literal: true

require "forwardable"
require_relative "frame"

module Culet
  module Profile
    # Delegates figures to an estimate.
    module Estimated
      extend Forwardable

      def_delegators :estimate, :samples, :blocks, :bytes, :low_bytes, :high_bytes, :variance
    end

    # The allocations of one stack in one view.
    class Site
      include Estimated

      # @return [Array] the identity of the site: frames, kind, class name, labels
      attr_reader :key
      # @return [Array<Frame>] innermost first
      attr_reader :frames
      # @return [Symbol] :malloc or :object
      attr_reader :kind
      # @return [String, nil] class of the objects
      attr_reader :class_name
      # @return [Hash{String => String}]
      attr_reader :labels
      attr_reader :estimate
      # @return [Births, nil] of the view growth; nil: not known
      attr_reader :births

      # @param key [Array] frames, kind, class name, labels
      # @param births [Births, nil]
      def initialize(key, estimate, births = nil)
        @key = key
        @frames, @kind, @class_name, @labels = key
        @estimate = estimate
        @births = births
      end

      # @return [Frame, nil] the innermost Ruby frame that has a file
      def ruby_frame = frames.find(&:ruby?)

      # @return [Frame, nil] the innermost frame of the program's own code, outside of gems and Ruby's library
      def application_frame = frames.find { |frame| frame.ruby? && frame.gem.nil? }

      # @return [String] the line of the program that allocates; where it has none, a gem's, or the native function
      def place = (application_frame || ruby_frame)&.place || outside

      # The order of sites before their bytes. Of growth, what grows all the time, or may, is first, then what was
      # allocated later than in the first period, which is that of a boot, and last that, and the collector's.
      #
      # @param may_grow [Boolean] of the site's row (Births#may_grow?)
      # @return [Integer] 0 in other views
      def rank(may_grow)
        return 0 if births.nil? || may_grow

        births.later? && !collector? ? 1 : 2
      end

      # @return [Boolean] whether culet itself allocated it in the process
      def own? = Stacks.own?(frames)

      # @return [Boolean] whether the collector allocated it, or other deferred work of Ruby
      def collector? = Stacks.collector?(frames)

      # @return [Boolean] whether Ruby allocated it, and no Ruby frame is known
      def native_in_ruby?
        frames.none? { |frame| frame.ruby? || frame.remark } &&
          frames.any?(&:ruby_library?)
      end

      # The names that the site counts for, in a table by `kind`.
      #
      # @param kind [Symbol] one of KINDS
      def names(kind)
        return [Stacks::OWN.method] if own?

        case kind
        when :label then labels.empty? ? ["(no label)"] : labels.map { |name, value| "#{name}=#{value}" }
        when :class then [class_name || "(malloc)"]
        when :place then [place]
        when :library then [frames.find(&:library)&.library || "(Ruby)"]
        else [name_of_ruby(kind)]
        end
      end

      private

      def name_of_ruby(kind)
        frame = ruby_frame
        case kind
        when :line then frame ? frame.place : outside
        when :file then frame ? frame.file : outside
        when :method then frame ? frame.method : outside
        when :gem then frame ? frame.gem || "application" : outside
        end
      end

      # The name of a site without Ruby code: the native function.
      def outside
        frame = frames.find(&:remark) || frames.first
        frame ? frame.to_s : "(unknown)"
      end
    end

    # A line of a table: sums by name.
    #
    # share: of the view's bytes. births: of its sites that are not the collector's. beside: of rows by line, the line
    # of the program with most bytes of the row; of rows by :place, the innermost line with most. rank: order of rows
    # before their bytes. nil where it does not apply.
    Row = Struct.new(:name, :estimate, :share, :births, :beside, :rank) do
      include Estimated

      # @return [Boolean] whether the row grows all the time
      def grows? = births&.grows? || false

      # @return [Boolean] whether it is what culet itself holds
      def own? = name == Stacks::OWN.method
    end
  end
end
