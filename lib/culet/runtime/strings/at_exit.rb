# frozen_string_literal: true

require_relative "../../agent"

module Culet
  module Strings
    # Loaded first into every Ruby process of `culet strings -- COMMAND`: starts the agent, and writes the strings to
    # the folder of CULET_STRINGS at exit.
    module AtExit
      # The variable with the folder.
      FOLDER = "CULET_STRINGS"
      # "0": digests instead of contents.
      CONTENT = "CULET_STRINGS_CONTENT"
      # "1": Ruby traces object allocations.
      TRACE = "CULET_STRINGS_TRACE"

      module_function

      # @return [void]
      def prepare
        return unless Culet.native? && ENV.key?(FOLDER)

        trace if ENV[TRACE] == "1"
        # at_exit handlers run in reverse order: those of the program have run before.
        at_exit { write(ENV.fetch(FOLDER), content: ENV[CONTENT] != "0") }
      end

      def trace
        require "objspace"
        ObjectSpace.trace_object_allocations_start
      end
      private_class_method :trace

      # The file appears when it is complete. A failure must not change the program's exit status.
      def write(folder, content:)
        return unless File.directory?(folder)

        require_relative "slices"
        path = File.join(folder, "#{Process.pid}.strings")
        File.open("#{path}.part", "wb", 0o600) do |file|
          slices = Slices.new(collect: true) do |from, collect|
            Agent.strings(from, collect, content, Slices::SECONDS)
          end.read(file)
          File.write("#{path}.json", JSON.generate(slices.reading))
        end
        File.rename("#{path}.part", path)
      rescue SystemCallError, Error => e
        warn("culet: the strings of process #{Process.pid} were not written: #{e.message}")
      end
      private_class_method :write
    end
  end
end

Culet::Strings::AtExit.prepare
