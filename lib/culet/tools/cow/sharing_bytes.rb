# frozen_string_literal: true

module Culet
  module Cow
    # Resident bytes by sharing with a related process.
    #
    # shared: other processes map the page too; unshared: private, and the related process has a page at the same
    # address; fresh: private, and the related process has none; own: private, without a related process to compare
    # with.
    SharingBytes = Struct.new(:shared, :unshared, :fresh, :own) do
      # @return [SharingBytes] zero bytes
      def self.none = new(0, 0, 0, 0)

      # @param sharing [Symbol] one of the members
      # @param bytes [Integer]
      def add(sharing, bytes) = self[sharing] += bytes

      # @param other [SharingBytes]
      # @return [SharingBytes] the sum
      def +(other) = SharingBytes.new(*to_a.zip(other.to_a).map(&:sum))

      # @return [Integer] bytes that only this process maps
      def private = unshared + fresh + own

      # @return [Integer] bytes that existed at the fork
      def inherited = shared + unshared

      # @return [Integer]
      def resident = shared + private

      # @return [Hash{String => Integer}] for a JSON document
      def document
        { "shared_bytes" => shared, "private_bytes" => self.private, # rubocop:disable Style/RedundantSelf
          "unshared_bytes" => unshared, "fresh_bytes" => fresh }
      end
    end
  end
end
