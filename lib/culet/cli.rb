# frozen_string_literal: true

require_relative "errors"
require_relative "version"
require_relative "cli/output"
require_relative "cli/suggestion"

module Culet
  # The `culet` command: finds the verb, runs it, and turns errors into a message and an exit status. Each verb is one
  # file in cli/.
  #
  # @api private
  module CLI
    # verb => [constant, one line for the overview]; the file is cli/VERB.rb.
    VERBS = {
      "run" => [:Run, "run a command on culet's allocator or another one"],
      "env" => [:Env, "print the environment of `run` for shells and Dockerfiles"],
      "lib" => [:Lib, "print the path of libculet.so"],
      "explain" => [:Explain, "name the cause of large processes, and the remedies"],
      "doctor" => [:Doctor, "check the allocator and the settings of a process"],
      "report" => [:Report, "show where the memory of a process is"],
      "map" => [:Map, "draw the memory of a process, page by page"],
      "snapshot" => [:Snapshot, "save the memory layout of a process to a file"],
      "diff" => [:Diff, "show what grew between two snapshots"],
      "cow" => [:Cow, "show which memory forked workers share with their parent"],
      "requires" => [:Requires, "measure each require; find code that never runs"],
      "strings" => [:Strings, "find duplicate strings and what sharing them would free"],
      "retain" => [:Retain, "find out what keeps the memory of a program"],
      "profile" => [:Profile, "find the code that holds the memory of a program"],
      "autopsy" => [:Autopsy, "find out what killed a process, and what it held"],
      "top" => [:Top, "watch the memory of process trees on a terminal"],
      "live" => [:Live, "watch the memory of process trees in a browser"],
      "limit" => [:Limit, "show the memory limit of a process and the steps taken"],
      "compare" => [:Compare, "compare allocators on Ruby workloads"],
      "trace" => [:Trace, "record every allocation of a program"],
      "replay" => [:Replay, "replay a recorded trace on several allocators"],
      "mcp" => [:Mcp, "serve coding agents over stdio, read-only"],
      "completion" => [:Completion, "print the shell completion for bash, zsh or fish"]
    }.freeze

    # Verbs of two words: the file and the constant of the command that has their options.
    SECOND_WORDS = { %w[cow experiment] => ["cow_experiment", :CowExperiment],
                     %w[requires --unused] => ["requires_unused", :RequiresUnused] }.freeze

    # Deprecated names of verbs => present names (docs/versioning.md).
    RENAMED = { "signal" => %w[snapshot --objects], "require" => %w[requires] }.freeze

    # Exit statuses.
    EXIT_OK = 0
    EXIT_FAILED = 1
    EXIT_LIMIT = 3
    # A command that a signal ended has this status plus the signal's number, as in a shell.
    EXIT_SIGNAL = 128

    module_function

    # Runs the command line.
    #
    # @param argv [Array<String>] the arguments after `culet`
    # @param out [IO] for reports
    # @param err [IO] for progress, messages and errors
    # @return [Integer] the exit status: 0 done, 1 failed, 2 wrong usage, 3 limit exceeded, 128 plus the number of a
    #   signal. Verbs that run a command: the status of the command if not 0, 127 command not found, 126 not executable
    # @yield after the verb is loaded, before it runs
    def run(argv, out: $stdout, err: $stderr, &loaded)
      out = Output.new(out)
      err = Messages.new(err)
      # The gems that print tables match TERM with patterns.
      ENV.delete("TERM") unless ENV["TERM"].to_s.valid_encoding?
      status = perform(words(argv), out, err, &loaded)
      out.flush
      status
    rescue Error => e
      err.puts("culet: #{e.message}")
      e.exit_status
    rescue Output::Unread
      EXIT_OK
    rescue SystemCallError => e
      err.puts("culet: #{e.message}")
      EXIT_FAILED
    rescue Interrupt
      EXIT_SIGNAL + ::Signal.list.fetch("INT")
    rescue RuntimeError => e
      # RubyGems raises a RuntimeError if an Interrupt comes while it loads a file.
      raise unless e.cause.is_a?(Interrupt)

      EXIT_SIGNAL + ::Signal.list.fetch("INT")
    end

    def perform(words, out, err)
      verb, *rest = current(words, err)
      case verb
      when nil, "--help", "-h" then overview(out)
      when "--version", "-v", "version" then out.puts("culet #{VERSION}")
      when "help" then return help(rest, out, err)
      else
        command = command(verb).new(out: out, err: err)
        yield if block_given?
        return command.call(rest)
      end
      EXIT_OK
    end

    # @return [Array<String>] the words, with the current name of the verb
    def current(words, err)
      verb, *rest = words
      name = RENAMED[verb] or return words
      err.puts("culet: `culet #{verb}` is now `culet #{name.join(" ")}`; the next minor version removes the old name")
      [*name, *rest]
    end

    # Arguments are bytes. Those of culet are UTF-8 in every locale; those of the command after `--` are not changed.
    def words(argv)
      words = argv.map { |word| word.to_s.dup.force_encoding(Encoding::UTF_8) }
      broken = words.take_while { |word| word != "--" }.find { |word| !word.valid_encoding? }
      raise UsageError, "the word #{broken.inspect} is not valid UTF-8; culet accepts names in UTF-8 only" if broken

      words
    end

    def help(words, out, err)
      return overview(out) || EXIT_OK if words.empty?

      verb, second, *more = words
      verb, = current([verb], err)
      if more.any? || (second && !SECOND_WORDS.key?([verb, second]))
        raise UsageError, "`culet help` takes one verb, e.g. `culet help report`"
      end

      command(verb).new(out: out, err: err).call([*second, "--help"])
    end

    # @param verb [String]
    # @return [Class] its command
    # @raise [UsageError] for an unknown verb
    def command(verb)
      constant, = VERBS.fetch(verb) do
        advice = Suggestion.for(verb, [*VERBS.keys, "help", "version"]) || "`culet --help` lists them"
        raise UsageError, "there is no verb #{verb.inspect}; #{advice}"
      end
      require_relative "cli/#{verb}"
      const_get(constant)
    end

    # @param out [IO] gets the list of verbs
    def overview(out)
      out.puts("culet #{VERSION}: find out why a Ruby process is large, fix it, prove the gain", "",
               "usage: culet VERB [options] [-- COMMAND ...]", "")
      VERBS.each { |verb, (_, line)| out.puts(format("  %-11s %s", verb, line)) }
      out.puts("", "Run `culet help VERB` for the options and examples of a verb.")
    end

    private_class_method :perform, :current, :words, :help
  end
end
