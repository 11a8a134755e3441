# frozen_string_literal: true

module Culet
  module Live
    # JSON merge patches (RFC 7396): the members that differ, and null for those that are gone. A document therefore has
    # no null; a figure that is not known is left out.
    module MergePatch
      module_function

      # @param value [Object] as JSON has it
      # @return [Object] the same without members that are nil, perhaps the same object; elements of lists stay
      def compact(value)
        return value unless value.is_a?(Hash)

        found = value.value?(nil) ? value.compact : value
        found.each do |key, one|
          next unless one.is_a?(Hash)

          part = compact(one)
          next if part.equal?(one)

          found = found.dup if found.equal?(value)
          found[key] = part
        end
        found
      end

      # @param before [Hash] without nil
      # @param after [Hash] without nil
      # @return [Hash] the patch that makes `after` of `before`; empty if they are equal
      def diff(before, after)
        patch = {}
        kept = 0
        after.each do |key, value|
          old = before[key]
          kept += 1 unless old.nil?
          next if old == value

          patch[key] = old.is_a?(Hash) && value.is_a?(Hash) ? diff(old, value) : value
        end
        before.each_key { |key| patch[key] = nil unless after.key?(key) } if kept < before.size
        patch
      end

      # @param document [Object]
      # @param patch [Object]
      # @return [Object] a new document; parts that the patch does not name are those of the old one
      def apply(document, patch)
        return patch unless patch.is_a?(Hash)

        patch.each_with_object(document.is_a?(Hash) ? document.dup : {}) do |(key, value), merged|
          value.nil? ? merged.delete(key) : merged[key] = apply(merged[key], value)
        end
      end
    end
  end
end
