# frozen_string_literal: true

module Culet
  # Threads of culet in the process of a program.
  module BackgroundThread
    # Seconds from an error to the next try, the shortest and the longest pause.
    PAUSES = [0.1, 1.0].freeze
    private_constant :PAUSES

    # Starts a thread that ends with the program. A thread inherits what `Thread.handle_interrupt` defers at the place
    # where it is created, and Ruby's end waits for a thread that defers everything.
    #
    # @param name [String] for `Thread#name`
    # @yield in the new thread
    # @return [Thread]
    def self.start(name, &block)
      Thread.new { Thread.handle_interrupt(Object => :immediate, &block) }.tap { |thread| thread.name = name }
    end

    # Starts a thread that calls the block again and again. An error, such as a lack of descriptors or of memory, may be
    # over in a moment: the thread pauses and goes on. One warning per spell goes to stderr.
    #
    # @param name [String] for `Thread#name`
    # @param failure [String] what does not work during a spell, for the warning
    # @yieldreturn [Object] :done ends the thread
    # @return [Thread]
    def self.repeat(name, failure)
      start(name) do
        pause = 0
        loop do
          break if yield == :done

          pause = 0
        rescue StandardError => e
          warn("culet: #{failure} at the moment: #{e.class}: #{e.message}") if pause.zero?
          sleep(pause = (pause * 2).clamp(*PAUSES))
        end
      end
    end
  end
end
