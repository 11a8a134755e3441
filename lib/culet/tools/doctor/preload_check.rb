# frozen_string_literal: true

require_relative "finding"
require_relative "../../allocators/preload"

module Culet
  class Doctor
    # Whether the allocator and the settings that the environment requests are in effect.
    class PreloadCheck < Check
      # @return [Array<Finding>]
      def findings
        unless target.environment_known?
          return [note("preload", "the environment is unknown: the title of the process overwrote it")]
        end

        [*system_wide, *preloads, *settings]
      end

      private

      SYSTEM_WIDE = "/etc/ld.so.preload"
      private_constant :SYSTEM_WIDE

      def system_wide
        path = target.live.file(SYSTEM_WIDE)
        return [] if !File.exist?(path) || File.readable?(path)

        [unknown("preload", "libraries preloaded system-wide", "#{SYSTEM_WIDE} cannot be read", "Run culet as root.")]
      end

      def preloads
        words = Allocators::Preload.new(target.environment["LD_PRELOAD"]).libraries
        missing = words.reject { |word| target.search_order.mapped(word) }
        return [ok("preload", "LD_PRELOAD is not set")] if words.empty?
        return [ok("preload", "all libraries of LD_PRELOAD are loaded (#{words.join(", ")})")] if missing.empty?

        missing.map { |word| ineffective(word) }
      end

      def ineffective(word)
        name = Allocators.of_library(word)
        text = "LD_PRELOAD names #{word}, which is not loaded: #{reason(word)}"
        remedy = if name && name != "glibc" then "`culet run --allocator #{name} -- COMMAND` preloads the right file."
                 else "Correct the path, or remove it from LD_PRELOAD."
                 end
        bad("preload", text, remedy)
      end

      def reason(word)
        return "the loader finds no library of that name" unless word.include?("/")

        file = target.live.file(word)
        return "the file does not exist" unless File.exist?(file)
        return "it is not a shared library" unless Elf.file?(file)
        return "it is for another architecture" unless Elf.new(file).same_kind?(Elf.new("/proc/#{target.pid}/exe"))

        "the loader refused it, the process removed it (CULET_CHILDREN=none), or the program is set-user-ID"
      rescue Elf::Invalid, SystemCallError
        "it cannot be read"
      end

      # Settings of an allocator that does not serve malloc are ineffective.
      def settings
        names = Allocators.tuning_variables(target.environment)
        Allocators.definitions.flat_map do |definition|
          set = names.grep(definition.variables)
          set.empty? || definition.name == target.allocator ? [] : [idle(definition.name, set)]
        end
      end

      def idle(name, set)
        text = "#{set.join(" and ")} #{set.size == 1 ? "is" : "are"} set for #{name}, which does not serve malloc"
        return note("settings", text) if %w[glibc culet].include?(name)

        bad("settings", text, "Start it with `culet run --allocator #{name} -- COMMAND`, or unset the variable.")
      end
    end
  end
end
