# frozen_string_literal: true

module Culet
  module Cow
    # Resident bytes of something, by how they stand to the relative that a process shares memory with.
    #
    # shared: other processes map the page too; unshared: the relative has a page at that address, but this one is the
    # process's own by now; fresh: the process's own, and the relative has nothing there; own: the process's own, where
    # there is no relative to compare with.
    Shares = Struct.new(:shared, :unshared, :fresh, :own) do
      # @return [Shares] of nothing
      def self.none = new(0, 0, 0, 0)

      # @param standing [Symbol] one of the members
      # @param bytes [Integer]
      def add(standing, bytes) = self[standing] += bytes

      # @param other [Shares]
      # @return [Shares] both together
      def +(other) = Shares.new(*to_a.zip(other.to_a).map(&:sum))

      # @return [Integer] bytes that no other process maps
      def private = unshared + fresh + own

      # @return [Integer] bytes that were there when the process was forked
      def inherited = shared + unshared

      # @return [Integer]
      def resident = shared + private

      # @return [Hash{String => Integer}] for a JSON document
      def document
        { "shared_bytes" => shared, "private_bytes" => self.private, "unshared_bytes" => unshared, "fresh_bytes" => fresh }
      end
    end
  end
end
