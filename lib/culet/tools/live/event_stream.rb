# frozen_string_literal: true

require_relative "client"

module Culet
  module Live
    # Server-sent events for one page: an event per frame, whose id is the frame's number. A page that connects again
    # names the last one it has, and gets those after it.
    class EventStream
      # A comment after so many seconds without a frame shows whether the page is still there.
      BEAT_SECONDS = 10.0
      # Milliseconds until the browser connects again.
      RETRY = 1000
      private_constant :BEAT_SECONDS, :RETRY

      # @param history [History]
      # @param number [Integer] of the last frame that the page has; 0: none
      def initialize(history, number)
        @history = history
        @number = number
      end

      # Writes until the page has gone, there are no more frames, or the history is stopped.
      #
      # @param client [Client]
      # @return [void]
      def call(client)
        client.write("retry: #{RETRY}\n\n")
        while (frames = @history.after(@number, BEAT_SECONDS))
          client.write(frames.empty? ? ":\n\n" : "")
          frames.each { |frame| client.write("id: #{frame.number}\nevent: moment\ndata: #{frame.text}\n\n") }
          @number = frames.last.number if frames.any?
        end
        client.write("event: end\ndata: {}\n\n") unless @history.stopped?
      rescue Client::Lost
        nil # the browser connects again if the page is still open
      end
    end
  end
end
