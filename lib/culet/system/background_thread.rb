# frozen_string_literal: true

module Culet
  # Threads of culet in the process of a program.
  module BackgroundThread
    # Starts a thread that ends with the program. A thread inherits what `Thread.handle_interrupt` defers at the place
    # where it is created, and Ruby's end waits for a thread that defers everything.
    #
    # @param name [String] for `Thread#name`
    # @yield in the new thread
    # @return [Thread]
    def self.start(name, &block)
      Thread.new { Thread.handle_interrupt(Object => :immediate, &block) }.tap { |thread| thread.name = name }
    end
  end
end
