# frozen_string_literal: true

require_relative "finding"

module Culet
  class Doctor
    # Which malloc the process really calls.
    class AllocatorCheck < Check
      TOPIC = "allocator"

      # @return [Array<Finding>]
      def findings = [serving, *replaced, *loaded_in_vain]

      private

      def serving
        path = target.search_order.serving
        if path.nil? && target.unreadable.any?
          return unknown(TOPIC, "which allocator serves malloc is", "#{target.unreadable.first} cannot be opened from here", "Look from inside its container, or as root.")
        end
        return note(TOPIC, "no mapped file defines malloc: a static program with an allocator of its own") unless path

        case target.allocator
        when "culet" then culet(path)
        when nil then note(TOPIC, "#{path} serves malloc; culet does not know this allocator")
        else ok(TOPIC, "#{target.allocator} serves malloc (#{path})")
        end
      end

      def culet(path)
        case target.dormant?
        when false then ok(TOPIC, "culet serves malloc (#{path})")
        when true
          note(TOPIC, "culet is loaded (#{path}) but dormant, glibc serves malloc: a program that is not Ruby, started " \
                      "from a Ruby process", "Set CULET_CHILDREN=all to let such programs use culet too.")
        else
          note(TOPIC, "culet is loaded (#{path}); whether it is dormant cannot be seen, because the process wrote its " \
                      "title over its environment")
        end
      end

      def replaced
        path = target.search_order.serving.to_s
        return [] unless path.end_with?(" (deleted)")

        [note(TOPIC, "the file #{path.delete_suffix(" (deleted)")} was replaced after the process started",
              "Restart the process to use the new one.")]
      end

      def loaded_in_vain
        order = target.search_order
        order.defining.reject { |path| path == order.serving }.filter_map do |path|
          name = Allocators.of_library(path)
          next unless name && name != target.allocator

          bad(TOPIC, "#{name} is loaded (#{path}) and does not serve malloc: it was loaded after #{target.allocator || "another"}",
              "Preload it, e.g. `culet run --allocator #{name} -- COMMAND`, instead of linking or opening it later.")
        end
      end
    end
  end
end
