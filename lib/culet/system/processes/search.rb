# frozen_string_literal: true

require_relative "../../errors"
require_relative "cpu"
require_relative "identity"
require_relative "live"
require_relative "memory"
require_relative "tree"

module Culet
  module Processes
    # Finds processes by name. An exact name (program, script, unit, or first word of the title) precedes a part of a
    # name or title, and that precedes a word of a command line: `puma` finds the server, not an editor with puma.rb
    # open. culet and its parent processes are excluded.
    class Search
      # Raised if no process has the name.
      class Absent < Error; end

      # Raised if several process trees have the name, and the caller needs one.
      class Ambiguous < Error; end

      # A process tree: a process that matches and comes from no other that does, and its descendants that match or run
      # its program, as forked workers with titles of their own do. Each is an Identity; the root comes first.
      Family = Struct.new(:root, :members, keyword_init: true) do
        # @return [Integer] bytes; shared pages count once. A process that has ended meanwhile has none.
        def pss_bytes = members.sum { |one| Memory.pss_bytes(one.pid).to_i }
      end

      # Programs that start or show others have their names in the command line and share their unit.
      WRAPPERS = %w[ash bash busybox catatonit csh dash docker-init doas dumb-init emacs env fish gdb gosu grep
                    ionice ksh less ltrace nano nice nohup pgrep rg runsv runuser screen setpriv setsid sh ssh
                    sshd strace su sudo systemd-run tail tcsh time timeout tini tmux vi view vim watch xargs
                    zsh].freeze
      OWN = %w[culet culet-scope].freeze
      RUBY = /\Aruby[\d.]*\z/
      # Shortest part of a name that matches.
      LEAST_PART = 3
      private_constant :WRAPPERS, :OWN, :RUBY, :LEAST_PART

      # @param name [String] a title, a command, a file name or a unit, or a part of one
      def initialize(name)
        @name = name
      end

      # @return [Array<Family>] the oldest process first
      # @raise [Absent] when there is none
      # @raise [Culet::Error] when none of them may be read
      def families
        found = matches
        raise Absent, absence if found.empty?

        readable = found.select { |match| readable?(match.pid) }
        Live.new(found.first.pid).read("maps") if readable.empty? # which says why not
        by_pid = readable.to_h { |match| [match.pid, match] }
        roots = readable.reject { |match| Search.ancestors(match.pid).drop(1).any? { |pid| by_pid.key?(pid) } }
        roots.map { |root| Family.new(root: root, members: [root, *descendants(root, by_pid)]) }
      end

      # @return [Array<Identity>] in the order of their numbers
      def matches
        @own = Search.ancestors(::Process.pid)
        all = identities
        of = [->(one) { one.names.include?(@name) },
              ->(one) { part?(one) && [one.title, *one.names].any? { |text| text.include?(@name) } },
              ->(one) { part?(one) && one.command_line.match?(word) }]
        found = of.lazy.map do |test|
          all.select(&test).reject { |one| wrapper?(one) && !own_name?(one) }
        end.find(&:any?).to_a
        found.sort_by(&:pid)
      end

      class << self
        # @return [Array<Integer>] it, its parent, and so on
        def ancestors(pid)
          list = [pid]
          while (parent = Cpu.parent(list.last)) && parent.positive? && !list.include?(parent)
            list << parent
          end
          list
        end

        # @return [Array<Integer>] Ruby programs of this machine that this user may read, without those that another one
        #   of them started; not culet itself, nor what started it
        def ruby_roots
          found = (pids - ancestors(::Process.pid)).sort.select { |pid| ruby?(pid) }
          found.reject { |pid| ancestors(pid).drop(1).intersect?(found) }
        end

        # @return [Array<Integer>] all processes
        def pids = Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i)

        private

        def ruby?(pid)
          identity = Identity.new(pid)
          return false unless [identity.executable, identity.program, identity.comm].any? { |name| name&.match?(RUBY) }

          File.open("/proc/#{pid}/smaps_rollup").close
          Cpu.state(pid) != "Z" && identity.script != "culet" && !identity.copy?
        rescue *GONE_OR_FORBIDDEN
          false
        end
      end

      private

      def identities
        (Search.pids - @own).map { |pid| Identity.new(pid) }.reject do |one|
          OWN.include?(one.script || one.program) || one.copy? || one.command_line.empty? || Cpu.state(one.pid) == "Z"
        end
      end

      # Two letters are in every other name.
      def part?(one) = @name.size >= LEAST_PART && !wrapper?(one)

      def word = @word ||= /(?<![[:alnum:]])#{Regexp.escape(@name)}(?![[:alnum:]])/

      def wrapper?(one) = WRAPPERS.include?(one.program.delete_prefix("-")) || WRAPPERS.include?(one.executable)

      def own_name?(one) = [one.comm, one.program, one.executable].include?(@name)

      def readable?(pid)
        File.open("/proc/#{pid}/maps").close
        true
      rescue *GONE_OR_FORBIDDEN
        false
      end

      # @return [Array<Identity>] in the order of their numbers
      def descendants(root, by_pid)
        program = program(root.pid)
        pids = Tree.new(root.pid).pids.drop(1).sort
        pids.filter_map { |pid| by_pid[pid] || (Identity.new(pid) if program && forked?(pid, program)) }
      end

      def forked?(pid, program) = program(pid) == program && readable?(pid) && Cpu.state(pid) != "Z"

      # @return [String, nil] path of the executable
      def program(pid)
        File.readlink("/proc/#{LivingThread.of(pid)}/exe")
      rescue *GONE_OR_FORBIDDEN
        nil
      end

      def absence
        own = @own.drop(1).map { |pid| Identity.new(pid) }.find { |one| one.names.include?(@name) && !wrapper?(one) }
        return "the only process called #{@name.inspect} is #{own.pid}, which started culet; give its number" if own

        "no process has #{@name.inspect} in its title, command or file name; `ps -ef` lists all processes, " \
          "and a number is accepted too"
      end
    end
  end
end
