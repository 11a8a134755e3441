# frozen_string_literal: true

require_relative "finding"

module Culet
  class Doctor
    # How many arenas malloc of glibc may make.
    class ArenaCheck < Check
      # glibc's default limit on 64-bit machines, NARENAS_FROM_NCORES in its malloc/arena.c.
      ARENAS_PER_CORE = 8
      # Threads of a Ruby program that starts none: main and timer.
      SINGLE = 2

      # @return [Array<Finding>]
      def findings
        return [limit ? limited(limit) : unlimited] if setup.allocator == "glibc"

        [ok("arenas", "glibc does not serve malloc, so its arenas do not matter")]
      end

      private

      def limit = setup.arena_limit

      def limited(count) = ok("arenas", "glibc is limited to #{count} #{count == "1" ? "arena" : "arenas"}")

      def unlimited
        most = ARENAS_PER_CORE * target.cores
        text = "glibc may make #{most} arenas (#{ARENAS_PER_CORE} per core, #{target.cores} cores)"
        return note("arenas", "#{text}; whether a setting limits them is unknown") unless target.environment_known?

        remedy = advice("allocator", "arenas")
        text_of_threads = "#{text}, and the process has #{target.threads} threads"
        return bad("arenas", text_of_threads, remedy) if threaded_ruby?

        note("arenas", "#{text}; a Ruby with many threads grows with them", remedy)
      end

      def threaded_ruby? = target.ruby? && target.threads > SINGLE
    end
  end
end
