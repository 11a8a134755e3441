# frozen_string_literal: true

module Culet
  module Processes
    # Whether `culet/auto` is at work in a process, seen from outside: by the native thread that gives memory back, or,
    # where Ruby's threads do it at once, by the descriptor through which it measures what it returned.
    module Trimming
      THREAD = "culet-trim"
      MEASURE = %r{\A/proc/\d+/statm\z}
      private_constant :THREAD, :MEASURE

      module_function

      # @param pid [Integer]
      # @return [String, nil] "background" or "now", as in CULET_TRIM; nil where nothing of it is seen, or the process
      #   has ended or may not be read
      def mode(pid)
        return "background" if thread?(pid)

        "now" if measures?(pid)
      end

      def thread?(pid) = children("/proc/#{pid}/task").any? { |thread| name(pid, thread) == THREAD }
      private_class_method :thread?

      def measures?(pid) = children("/proc/#{pid}/fd").any? { |number| link(pid, number)&.match?(MEASURE) }
      private_class_method :measures?

      def children(directory)
        Dir.children(directory)
      rescue *GONE_OR_FORBIDDEN
        []
      end
      private_class_method :children

      # A thread may end, and a descriptor be closed, between the list and the look.
      def name(pid, thread)
        File.read("/proc/#{pid}/task/#{thread}/comm").chomp
      rescue *GONE_OR_FORBIDDEN
        nil
      end
      private_class_method :name

      def link(pid, number)
        File.readlink("/proc/#{pid}/fd/#{number}")
      rescue *GONE_OR_FORBIDDEN
        nil
      end
      private_class_method :link
    end
  end
end
