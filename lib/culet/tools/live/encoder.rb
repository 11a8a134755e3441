# frozen_string_literal: true

require "json"
require_relative "merge_patch"

module Culet
  module Live
    # Makes frames of states: one in sixty has the whole state, the others what changed. A frame is a line of JSON: "n"
    # its number, "full" or "patch", and "events" if there are any. The page, the history and recordings use the same.
    class Encoder
      # number: 1, 2, 3 ...; full: whether it needs no frame before it; text: the line, without its end.
      Frame = Struct.new(:number, :full, :text)

      # Frames from one whole state to the next.
      GROUP = 60
      private_constant :GROUP

      def initialize
        @number = 0
        @state = nil
      end

      # @param state [Hash] of State
      # @param events [Array<Hash>]
      # @return [Frame]
      def call(state, events)
        full = (@number % GROUP).zero?
        @number += 1
        body = full ? { "full" => state } : { "patch" => MergePatch.diff(@state, state) }
        @state = state
        body["events"] = events if events.any?
        Frame.new(@number, full, JSON.generate({ "n" => @number, **body }))
      end
    end
  end
end
