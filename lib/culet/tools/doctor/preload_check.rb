# frozen_string_literal: true

require_relative "finding"
require_relative "../allocators/preload"

module Culet
  class Doctor
    # What the environment asks for and the process does not have: an allocator thought to be on that is not.
    class PreloadCheck < Check
      # @return [Array<Finding>]
      def findings
        unless target.environment_known?
          return [note("preload", "the environment it was started with cannot be seen: the process wrote its title over it")]
        end

        [*system_wide, *preloads, *settings]
      end

      private

      SYSTEM_WIDE = "/etc/ld.so.preload"
      private_constant :SYSTEM_WIDE

      def system_wide
        path = target.live.file(SYSTEM_WIDE)
        return [] if !File.exist?(path) || File.readable?(path)

        [unknown("preload", "what the whole system preloads is", "#{SYSTEM_WIDE} cannot be read", "Look as root.")]
      end

      def preloads
        words = Allocators::Preload.new(target.environment["LD_PRELOAD"]).libraries
        missing = words.reject { |word| target.search_order.mapped(word) }
        return [ok("preload", "LD_PRELOAD is not set")] if words.empty?
        return [ok("preload", "every library of LD_PRELOAD is loaded (#{words.join(", ")})")] if missing.empty?

        missing.map { |word| ineffective(word) }
      end

      def ineffective(word)
        name = Allocators.of_library(word)
        text = "LD_PRELOAD names #{word}, which is not loaded: #{reason(word)}"
        remedy = if name && name != "glibc" then "`culet run --allocator #{name} -- COMMAND` finds the right file."
                 else "Correct its path or take it out of LD_PRELOAD."
                 end
        bad("preload", text, remedy)
      end

      def reason(word)
        return "no such library is found by that name" unless word.include?("/")

        file = target.live.file(word)
        return "there is no such file" unless File.exist?(file)
        return "it is not a shared library" unless Elf.file?(file)
        return "it is for another kind of processor" unless Elf.new(file).same_kind?(Elf.new("/proc/#{target.pid}/exe"))

        "the loader refused it, or the process took it out (CULET_CHILDREN=none is for that), or runs set-user-ID"
      rescue Elf::Invalid, SystemCallError
        "it cannot be read"
      end

      # Settings of an allocator that does not serve change nothing.
      def settings
        names = Allocators.tuning_variables(target.environment)
        Allocators.definitions.flat_map do |definition|
          set = names.select { |name| definition.variables.match?(name) }
          set.empty? || definition.name == target.allocator ? [] : [idle(definition.name, set)]
        end
      end

      def idle(name, set)
        text = "#{set.join(" and ")} #{set.size == 1 ? "is" : "are"} set, for #{name}, which does not serve malloc here"
        return note("settings", text) if %w[glibc culet].include?(name)

        bad("settings", text, "Start it on #{name} with `culet run --allocator #{name} -- COMMAND`, or unset that.")
      end
    end
  end
end
