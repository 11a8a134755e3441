# frozen_string_literal: true

require_relative "../../agent"

module Culet
  module Strings
    # Loaded into every Ruby process of `culet strings -- COMMAND`, before all else: the process can be asked for its
    # strings while it runs, and at its end it writes them into the folder that CULET_STRINGS names.
    module AtExit
      FOLDER = "CULET_STRINGS"
      # "0": digests instead of contents.
      CONTENT = "CULET_STRINGS_CONTENT"
      # "1": Ruby notes who allocates what, from here on.
      TRACE = "CULET_STRINGS_TRACE"

      module_function

      # @return [void]
      def prepare
        return unless Culet.native? && ENV.key?(FOLDER)

        trace if ENV[TRACE] == "1"
        # Handlers run last in, first out: what the program leaves behind in its own is not there any more.
        at_exit { write(ENV.fetch(FOLDER), content: ENV[CONTENT] != "0") }
      end

      def trace
        require "objspace"
        ObjectSpace.trace_object_allocations_start
      end
      private_class_method :trace

      # The file bears its name once it is whole. What keeps it from being written is not to change how the program ends.
      def write(folder, content:)
        return unless File.directory?(folder)

        require_relative "slices"
        path = File.join(folder, "#{Process.pid}.strings")
        File.open("#{path}.part", "wb", 0o600) do |file|
          slices = Slices.new(collect: true) { |from, collect| Agent.strings(from, collect, content, Slices::SECONDS) }.read(file)
          File.write("#{path}.json", JSON.generate(slices.reading))
        end
        File.rename("#{path}.part", path)
      rescue SystemCallError, Error => e
        warn("culet: the strings of process #{Process.pid} were not told: #{e.message}")
      end
      private_class_method :write
    end
  end
end

Culet::Strings::AtExit.prepare
