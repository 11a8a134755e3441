# frozen_string_literal: true

require "json"
require_relative "state"

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

    # The last frames, for pages that are opened or connected again, with limits on their number and size. Each page
    # reads from its own position, so that a slow one takes no memory.
    class History
      # Half an hour of seconds.
      MOST_FRAMES = 1800
      MOST_BYTES = 16 << 20

      # @param most_frames [Integer]
      def initialize(most_frames: MOST_FRAMES, most_bytes: MOST_BYTES)
        @most_frames = most_frames
        @most_bytes = most_bytes
        @frames = []
        @bytes = 0
        @lock = Mutex.new
        @changed = ConditionVariable.new
        @ended = @stopped = false
      end

      # @param frame [Encoder::Frame]
      def add(frame)
        @lock.synchronize do
          @frames << frame
          @bytes += frame.text.bytesize
          drop_group while too_large? && groups?
          @changed.broadcast
        end
      end

      # No more frames will come: pages get what is there.
      def finish = change { @ended = true }

      # Pages are to be disconnected.
      def stop = change { @stopped = true }

      # @return [Boolean] whether pages are to be disconnected
      def stopped? = @stopped

      # Waits for frames.
      #
      # @param number [Integer] of the last frame that the reader has; 0: none
      # @param seconds [Float] longest wait
      # @return [Array<Encoder::Frame>, nil] those after it; if these are no longer there, all from a whole state on;
      #   empty after the wait; nil: there will be no more
      def after(number, seconds)
        @lock.synchronize do
          @changed.wait(@lock, seconds) if !@stopped && !@ended && later(number).empty?
          return if @stopped

          frames = later(number)
          frames.empty? && @ended ? nil : frames
        end
      end

      private

      def change
        @lock.synchronize do
          yield
          @changed.broadcast
        end
      end

      # Numbers are consecutive.
      def later(number)
        first = @frames.first&.number or return []
        skipped = number + 1 - first
        skipped.between?(0, @frames.size) ? @frames.drop(skipped) : @frames.dup
      end

      def too_large? = @frames.size > @most_frames || @bytes > @most_bytes

      # A first group of more than the limit stays until the next one begins.
      def groups? = @frames.drop(1).any?(&:full)

      def drop_group
        past = @frames.drop(1).index(&:full) + 1
        @bytes -= @frames.shift(past).sum { |frame| frame.text.bytesize }
      end
    end
  end
end
