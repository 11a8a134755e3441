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
        return [ok("arenas", "glibc does not serve malloc, so its arenas do not matter")] unless glibc?
        return [limited(limit)] if limit

        [unlimited]
      end

      private

      def glibc? = target.allocator == "glibc" || target.dormant?

      # The variable, or the tunable for the same setting.
      def limit
        @limit ||= target.environment["MALLOC_ARENA_MAX"].to_s[/\A[1-9]\d*\z/] ||
                   target.environment["GLIBC_TUNABLES"].to_s[/(?:\A|:)glibc\.malloc\.arena_max=([1-9]\d*)/, 1]
      end

      def limited(count) = ok("arenas", "glibc is limited to #{count} #{count == "1" ? "arena" : "arenas"}")

      def unlimited
        most = ARENAS_PER_CORE * target.cores
        text = "glibc may make #{most} arenas (#{ARENAS_PER_CORE} per core, #{target.cores} cores)"
        return note("arenas", "#{text}; whether a setting limits them is unknown") unless target.environment_known?

        remedy = "Start it with `culet run -- COMMAND`, or set MALLOC_ARENA_MAX=2."
        if threaded_ruby?
          return bad("arenas", "#{text}, and the process has #{target.threads} threads; " \
                               "`culet report #{target.pid}` shows what they keep", remedy)
        end

        note("arenas", "#{text}; a Ruby with many threads grows with them", remedy)
      end

      def threaded_ruby? = target.ruby? && target.threads > SINGLE
    end
  end
end
