# frozen_string_literal: true

module Culet
  module Requires
    # What something took: its time and what was counted meanwhile.
    #
    # seconds; cpu_seconds: of the processor; objects: made; object_bytes: of their slots; mallocs: requests for memory;
    # malloc_bytes: what they asked for; paths: file-system calls that name a path; failed_paths: those of them that
    # failed.
    Figures = Struct.new(:seconds, :cpu_seconds, :objects, :object_bytes, :mallocs, :malloc_bytes,
                         :paths, :failed_paths) do
      # @return [Figures] all zero
      def self.none = new(0.0, 0.0, 0, 0, 0, 0, 0, 0)

      # @param list [Array<Numeric>, nil] as the recorder writes them
      # @return [Figures]
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

      # @param other [Figures]
      # @return [Figures]
      def +(other) = self.class.new(*to_a.zip(other.to_a).map(&:sum))

      # Figures of threads that work at the same time can overlap: nothing is below zero.
      #
      # @param other [Figures]
      # @return [Figures]
      def -(other) = self.class.new(*to_a.zip(other.to_a).map { |mine, its| [mine - its, mine * 0].max })
    end
  end
end
