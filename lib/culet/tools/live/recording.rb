# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/foreign_json"
require_relative "../../system/input_file"
require_relative "../../system/shape"
require_relative "history"
require_relative "recorder"
require_relative "state"

module Culet
  module Live
    # Reads a recording, which may come from anyone: every line is checked before a page sees it.
    class Recording
      HEAD = { "culet_live" => Recorder::FORMAT, "subject" => Shape::TEXT, "every_seconds" => Shape::SECONDS }.freeze
      MOST_BYTES = 1 << 30
      # Longest line, a whole state of thousands of processes.
      MOST_LINE_BYTES = 8 << 20
      # Moments that a page shows; of a longer recording each second, third ... one.
      MOST_MOMENTS = 3600
      MOST_EVENTS = 10_000
      # Of the frames that a page is sent.
      MOST_SENT_BYTES = 512 << 20
      DEPTH = 8
      private_constant :HEAD, :MOST_BYTES, :MOST_LINE_BYTES, :MOST_MOMENTS, :MOST_EVENTS,
                       :MOST_SENT_BYTES, :DEPTH

      # @return [String] what was recorded
      attr_reader :subject

      # @return [Float] seconds from one moment to the next
      attr_reader :every_seconds

      # @return [Array<String>] sentences about what is not shown
      attr_reader :notes

      # @param most_moments [Integer] limit of the moments in the history
      # @raise [Culet::Error] when it cannot be read, or is no recording
      def initialize(path, most_moments: MOST_MOMENTS)
        @path = path
        @most = most_moments
        @notes = []
        check_file
        read_head
      end

      # @return [History] the moments, all that there will be
      # @raise [Culet::Error] when a line is damaged
      def history
        stride = [-(-lines / @most), 1].max
        @notes << "one of #{stride} moments is shown" if stride > 1
        # The last moment is shown in any case.
        @history = History.new(most_frames: @most + 1, most_bytes: MOST_SENT_BYTES)
        @encoder = Encoder.new
        @sent = @before = 0
        @checked = nil
        thin(stride)
        raise Error, "#{@path} has no moment yet" if @before.zero?

        @history.finish
        @history
      end

      # @yieldparam state [Hash] of State, each in its turn
      # @raise [Culet::Error] when a line is damaged
      def each_moment
        before = nil
        each_state { |state, events| yield before = State.check(state, events, name: name, before: before) }
      end

      private

      def check_file
        size = open(&:size)
        raise Error, "#{@path} is too large for a recording" if size > MOST_BYTES
      end

      def read_head
        head = open { |file| parse(line(file), 1) }
        unless head.is_a?(Hash) && head.key?("culet_live")
          raise Error, "#{@path} is not a recording; `culet live --record FILE` makes one"
        end
        unless head["culet_live"].eql?(Recorder::FORMAT)
          raise Error, "#{@path} has version #{head["culet_live"].inspect[0, 20]} of the format, and this culet " \
                       "reads version #{Recorder::FORMAT}; open it with the culet that made it"
        end

        Shape.check(head, HEAD, name: @path)
        @subject, @every_seconds = head.values_at("subject", "every_seconds")
      rescue Damaged
        raise Error, "#{@path} is not a recording; `culet live --record FILE` makes one"
      end

      # A line that is no JSON.
      class Damaged < StandardError; end
      private_constant :Damaged

      def open(&block) = InputFile.open(@path, what: "a recording of `culet live --record`", &block)

      # @return [Integer] frames
      def lines
        open do |file|
          count = -1
          while (part = file.read(1 << 20))
            count += part.count("\n")
          end
          count
        end
      end

      # @return [String, nil] with its end, if it is whole
      def line(file) = file.gets("\n", MOST_LINE_BYTES)

      def parse(text, number)
        raise Error, "#{@path} is damaged: line #{number} is too long" if text.to_s.bytesize >= MOST_LINE_BYTES
        raise Damaged unless text.to_s.end_with?("\n")

        ForeignJson.parse(text, max_nesting: DEPTH)
      rescue JSON::ParserError
        raise Damaged
      end

      # @yieldparam state [Hash]
      # @yieldparam events [Array<Hash>]
      def each_state
        return enum_for(:each_state) unless block_given?

        open do |file|
          line(file)
          @number = 1
          state = nil
          until file.eof?
            frame = frame(file) or break
            @number += 1
            state = next_state(frame, state) or raise Error, "#{name} is damaged: it has no moment"
            yield state, events(frame)
          end
        end
      end

      # @return [Hash, nil] nil at a last line that was not written to its end
      def frame(file)
        parse(line(file), @number + 1)
      rescue Damaged
        raise Error, "#{@path} is damaged: line #{@number + 1} is not a line of a recording" unless file.eof?

        @notes << "the last line is incomplete, and left out: the recorder was ended while it wrote"
        nil
      end

      def next_state(frame, state)
        return unless frame.is_a?(Hash)
        return frame["full"] if frame["full"].is_a?(Hash)

        MergePatch.apply(state, frame["patch"]) if state && frame["patch"].is_a?(Hash)
      end

      def events(frame) = frame["events"].is_a?(Array) ? frame["events"] : []

      # Adds one of `stride` moments, with the events of those that are left out.
      def thin(stride)
        events = []
        left_out = nil
        each_state.with_index do |(state, more), index|
          events.concat(more)
          events.shift(events.size - MOST_EVENTS) if events.size > 2 * MOST_EVENTS
          next left_out = state unless (index % stride).zero?

          add(state, events.last(MOST_EVENTS))
          events = []
          left_out = nil
        end
        add(left_out, events.last(MOST_EVENTS)) if left_out
      end

      def add(state, events)
        at = State.check(state, events, name: name, before: @checked).fetch("at")
        @checked = state
        raise Error, "#{name} is damaged: its time is before that of an earlier line" if at < @before

        frame = @encoder.call(state, events)
        @sent += frame.text.bytesize
        raise Error, "#{@path} has too many processes to show" if @sent > MOST_SENT_BYTES

        @before = at
        @history.add(frame)
      end

      # The line that was read last.
      def name = "line #{@number} of #{@path}"
    end
  end
end
