# frozen_string_literal: true

require_relative "part"

module Culet
  module Scope
    # One line of /proc/PID/maps with its figures of smaps, what it is used for, and the state of each of its pages.
    class Mapping < Part
      # Bits of a page's state, as in scope/format.h.
      PRESENT = 1
      SWAPPED = 2
      EXCLUSIVE = 4
      FILE = 8
      ZERO = 32

      numbers :id, :start, :end, :offset, :inode, :rss_bytes, :pss_bytes, :shared_clean_bytes, :shared_dirty_bytes,
              :private_clean_bytes, :private_dirty_bytes, :swap_bytes
      texts :perms, :path, :use, :label

      # @return [String] the bytes of its P record behind the number; empty when there was none
      attr_accessor :pages_payload

      def initialize(fields)
        super
        raise Malformed, "mapping #{id} ends before it starts" if self.end < start

        @pages_payload = ""
      end

      # @return [Integer]
      def bytes = self.end - start

      # @return [Array<Array(Integer, Integer)>] runs of pages in address order: how many, their bits
      # @raise [Malformed] when they reach beyond its end
      def page_runs = @page_runs ||= Varints.all(pages_payload).each_slice(2).to_a

      # Yields what of it is in memory, in address order.
      #
      # @param page_bytes [Integer]
      # @yieldparam first [Integer] address
      # @yieldparam past [Integer] address
      # @raise [Malformed] when the pages told do not cover it
      def each_resident(page_bytes)
        at = start
        page_runs.each do |count, bits|
          past = at + (count * page_bytes)
          yield at, past if bits && bits & (PRESENT | ZERO) == PRESENT
          at = past
        end
        raise Malformed, "mapping #{id} has pages beyond its end" if at > self.end
      end
    end
  end
end
