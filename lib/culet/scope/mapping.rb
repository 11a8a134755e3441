# frozen_string_literal: true

require_relative "part"

module Culet
  module Scope
    # One line of /proc/PID/maps with its figures of smaps, what it is used for, and the state of each of its pages.
    class Mapping < Part
      # Bits of a page's state, as in reader/format.h.
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

      # @return [Runs] runs of pages in address order: how many, their bits
      # @raise [Malformed] when that is not what its bytes say
      def page_runs = @page_runs ||= Runs.new(pages_payload)

      # Yields its pages in address order, in runs of one state.
      #
      # @yieldparam first [Integer] address
      # @yieldparam past [Integer] address
      # @yieldparam bits [Integer] their state
      def each_run(page_bytes)
        at = start
        page_runs.each do |count, bits|
          past = at + (count * page_bytes)
          yield at, past, bits
          at = past
        end
      end

      # Yields the ranges of addresses that are in memory. Runs that lie side by side are one range: states that differ
      # otherwise alternate from page to page.
      def each_resident(page_bytes)
        from = to = start
        each_run(page_bytes) do |first, past, bits|
          next unless Mapping.resident?(bits)

          if first > to
            yield from, to if to > from
            from = first
          end
          to = past
        end
        yield from, to if to > from
      end

      # @param bits [Integer] state of a page
      # @return [Boolean] whether it takes memory
      def self.resident?(bits) = bits & (PRESENT | ZERO) == PRESENT

      # @raise [Malformed] when its pages go beyond its end
      def check(page_bytes)
        raise Malformed, "mapping #{id} has pages beyond its end" if page_runs.pages * page_bytes > bytes
      end
    end
  end
end
