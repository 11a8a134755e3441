# frozen_string_literal: true

require_relative "../tools/allocators"

module Culet
  module CLI
    # The part of `run --help` and `env --help` that lists what can be chosen.
    module AllocatorHelp
      VARIABLES = <<~TEXT
        culet/auto reads CULET_TRIM=background|now|off[,minimum=SIZE][,interval=SECONDS]: a trim that gives back less than
        minimum is not worth it, and so long, at the least, is waited from one trim to the next.

        culet reads from the environment:
          CULET_CHILDREN=ruby  (default) once a Ruby process runs on culet, the Ruby programs it starts do too; others,
                               such as browsers or git, load the library dormant: all goes to glibc's malloc
          CULET_CHILDREN=all   every program started from it runs on culet
          CULET_CHILDREN=none  the library takes itself out of LD_PRELOAD once it is loaded: no child gets it
        A program that is started directly, like CMD here, always uses the allocator. CULET_INHERITED is culet's own
        mark on such children; leave it alone.
      TEXT

      module_function

      # @param parser [OptionParser]
      # @param anywhere [Boolean] whether to leave out what is installed here
      def add(parser, anywhere: false)
        parser.separator("")
        parser.separator("Allocators, and their settings as NAME:KEY=VALUE[,KEY=VALUE...]:")
        Allocators.definitions.each { |definition| describe(parser, definition, anywhere) }
        parser.separator("")
        add_trim(parser)
        parser.separator("")
        VARIABLES.each_line { |line| parser.separator(line.chomp) }
        parser.separator("")
      end

      # What every contender can have, whatever its allocator.
      #
      # @param parser [OptionParser]
      def add_trim(parser)
        untrimmable = Allocators.definitions.select(&:untrimmable).map(&:name)
        parser.separator("Each but #{untrimmable.join(" and ")} has one more, for Ruby programs, through RUBYOPT (e.g. glibc:trim, " \
                         "jemalloc:trim,narenas=2):")
        Allocators::Trim::MODES.each { |mode, about| parser.separator("    #{Allocators::Trim.new(mode).spec.ljust(28)} #{about}") }
      end

      def describe(parser, definition, anywhere)
        parser.separator("  #{definition.name.ljust(10)}#{presence(Allocators.parse(definition.name)) unless anywhere}".rstrip)
        parser.separator("    #{definition.open_about}") if definition.open_about
        (definition.settings || {}).each_value do |setting|
          parser.separator("    #{setting.key.ljust(28)} #{setting.about}")
        end
      end
      private_class_method :describe

      def presence(choice)
        choice.library || "the C library's own malloc"
      rescue Error => e
        e.message
      end
      private_class_method :presence
    end
  end
end
