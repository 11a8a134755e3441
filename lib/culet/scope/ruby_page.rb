# frozen_string_literal: true

require_relative "varints"

module Culet
  module Scope
    # One of Ruby's heap pages: where it lies, and which of its slots hold an object.
    #
    # address: of the page; slot_bytes: of one slot; first_slot: bytes from the page's start to the first;
    # slots: how many; live: a String with one bit for each, the lowest of each byte first.
    RubyPage = Struct.new(:address, :slot_bytes, :first_slot, :slots, :live, keyword_init: true) do
      # @param payload [String] of an R record
      # @raise [Malformed] when it is too short
      def self.parse(payload)
        at = 0
        numbers = Array.new(4) do
          value, at = Scope::Varints.one(payload, at)
          raise Scope::Malformed, "a page of Ruby's is cut off" unless value

          value
        end
        address, slot_bytes, first_slot, slots = numbers
        live = payload.byteslice(at..)
        raise Scope::Malformed, "a page of Ruby's does not have a bit for each slot" if live.bytesize != (slots + 7) / 8

        new(address: address, slot_bytes: slot_bytes, first_slot: first_slot, slots: slots, live: live)
      end
    end
  end
end
