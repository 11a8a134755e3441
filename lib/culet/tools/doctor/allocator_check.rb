# frozen_string_literal: true

require_relative "finding"

module Culet
  class Doctor
    # Which malloc serves the process.
    class AllocatorCheck < Check
      TOPIC = "allocator"

      # @return [Array<Finding>]
      def findings = [serving, *replaced, *ineffective]

      private

      def serving
        path = target.search_order.serving
        return unopened(TOPIC, "allocator") if path.nil? && target.unreadable.any?
        return note(TOPIC, "no mapped file defines malloc: the program is static and has its own allocator") unless path

        case target.allocator
        when "culet" then culet(path)
        when nil then note(TOPIC, "malloc is served by #{path}, an unknown allocator")
        else ok(TOPIC, "#{target.allocator} serves malloc (#{path})")
        end
      end

      def culet(path)
        case target.dormant?
        when false then ok(TOPIC, "culet serves malloc (#{path})")
        when true
          note(TOPIC, "culet is loaded (#{path}) but dormant, glibc serves malloc: a program other than Ruby, " \
                      "started by a Ruby process", "Set CULET_CHILDREN=all to use culet in such programs too.")
        else
          note(TOPIC, "culet is loaded (#{path}); whether it is dormant is unknown, because the title of the process " \
                      "overwrote its environment")
        end
      end

      def replaced
        path = target.search_order.serving.to_s
        return [] unless path.end_with?(" (deleted)")

        [note(TOPIC, "the file #{path.delete_suffix(" (deleted)")} was replaced after the process started",
              "Restart the process to use the new one.")]
      end

      def ineffective
        order = target.search_order
        order.defining.reject { |path| path == order.serving }.filter_map do |path|
          name = Allocators.of_library(path)
          next unless name && name != target.allocator

          bad(TOPIC, "#{name} is loaded (#{path}) but does not serve malloc: " \
                     "it was loaded after #{target.allocator || "another allocator"}",
              "Preload it: `culet run --allocator #{name} -- COMMAND`.")
        end
      end
    end
  end
end
