# frozen_string_literal: true

require_relative "../allocators"

module Culet
  module CLI
    # The part of `run --help` and `env --help` that lists allocators, settings and environment variables.
    module AllocatorHelp
      VARIABLES = <<~TEXT
        Environment variables of the allocator:
          CULET_CHILDREN=ruby  (default) Ruby programs started by a Ruby process use
                               culet; other programs load the library but use malloc of
                               glibc
          CULET_CHILDREN=all   all child processes use culet
          CULET_CHILDREN=none  the library removes itself from LD_PRELOAD; no child
                               process loads it
          CULET_DECAY=MS       (default 500) returns memory to the kernel after it has
                               stayed free for MS to 2*MS milliseconds, 10 to 3600000;
                               a smaller value saves memory, a larger one page faults
          CULET_HARDEN=LEVEL   (default 0) detects memory errors, 1 to 3: 1 random
                               places and guard pages, 2 also canaries, zeroing and
                               delayed reuse, 3 more of them; each level is slower
          CULET_PROFILE=SIZE   (default 0: off) samples allocations for the memory
                               profile, one per SIZE bytes on average; in bytes, or in
                               k, m or g; 1 for 512k
          CULET_PROFILE_OUT=FILE
                               writes the profile to FILE when the program exits; %p
                               in FILE is the process id
          CULET_PROFILE_EVERY=SECONDS
                               (default 0: never) a program without Ruby writes
                               FILE.last as often, in case that it is killed
        The command itself always uses the allocator. CULET_INHERITED is internal; do not set it.

        Environment variables of the parts that a Ruby program loads:
          CULET_TRIM=background|now|off[,minimum=SIZE][,interval=SECONDS]
                               culet/auto: how to return free memory, the least amount
                               worth returning, and the least time between two trims
          CULET_REQUIRE=on|index|off, CULET_REQUIRE_CACHE=FOLDER
                               culet/require: its mode, and where it keeps the index
          CULET_UNUSED_FROM=start|asked
                               culet/unused: record from the start, or from the first
                               request on
          CULET_LIMIT=auto|SIZE|PERCENT|off
                               culet/limit: the memory limit of the process
          CULET_BLACKBOX=FOLDER
                               any part: keeps a file there for `culet autopsy`
      TEXT
      private_constant :VARIABLES

      module_function

      # @param anywhere [Boolean] whether to leave out what is installed here
      def add(parser, anywhere: false)
        parser.separator("")
        parser.separator("Allocators and their settings, written NAME:KEY=VALUE[,KEY=VALUE...]:")
        Allocators.definitions.each { |definition| describe(parser, definition, anywhere) }
        parser.separator("  PATH      a library by its path, with a slash, e.g. ./libjemalloc.so.2:narenas=2")
        parser.separator("")
        add_trim(parser)
        parser.separator("")
        VARIABLES.each_line { |line| parser.separator(line.chomp) }
        parser.separator("")
      end

      # The setting that is not an allocator's own.
      def add_trim(parser)
        untrimmable = Allocators.definitions.select(&:untrimmable).map(&:name)
        parser.separator("One more setting, of all but #{untrimmable.join(" and ")}, for Ruby programs, " \
                         "e.g. glibc:trim or jemalloc:trim,narenas=2; it loads culet/auto through RUBYOPT:")
        Allocators::Trim::MODES.each do |mode, about|
          parser.separator("    #{Allocators::Trim.new(mode).spec.ljust(28)} #{about}")
        end
      end

      def describe(parser, definition, anywhere)
        parser.separator("  #{definition.name.ljust(10)}#{presence(definition) unless anywhere}".rstrip)
        parser.separator("    #{definition.open_about}") if definition.open_about
        (definition.settings || {}).each_value do |setting|
          parser.separator("    #{setting.key.ljust(28)} #{setting.about}")
        end
      end

      def presence(definition)
        choice = Allocators.parse(definition.name)
        return choice.library || "malloc of the C library" if choice.available?

        choice.package ? "not installed; Debian package #{choice.package}" : "not built; run `culet lib` for the reason"
      end

      private_class_method :describe, :presence
    end
  end
end
