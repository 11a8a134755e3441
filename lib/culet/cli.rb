# frozen_string_literal: true

require_relative "errors"
require_relative "version"

module Culet
  # The `culet` command: finds the verb, runs it, turns errors into one plain
  # sentence and an exit status. Each verb is one file under cli/.
  module CLI
    # verb => [constant, one line for the overview]; the file is cli/VERB.rb.
    VERBS = {
      "run" => [:Run, "run a command on culet's allocator, or on another one"],
      "env" => [:Env, "print the settings of `run` as shell assignments, for Dockerfiles"],
      "lib" => [:Lib, "print the path of libculet.so"],
      "doctor" => [:Doctor, "which allocator is really active, and what else matters"],
      "report" => [:Report, "where the memory of a running process is, level by level"],
      "map" => [:Map, "the picture of a process's memory, page by page, to zoom in"],
      "snapshot" => [:Snapshot, "keep what report and map show in a file, once or again and again"],
      "diff" => [:Diff, "what grew between two snapshots"],
      "cow" => [:Cow, "what forked workers share with their parent, and what they stopped sharing"],
      "require" => [:Require, "what each require of a program costs, and which compiled code never ran"],
      "signal" => [:Signal, "ask a process with culet's agent for a snapshot that tells its Ruby objects too"],
      "strings" => [:Strings, "which strings of a process share what, and what more sharing would free"],
      "compare" => [:Compare, "measure allocators against each other on Ruby workloads"],
      "trace" => [:Trace, "record every allocation of a program"],
      "replay" => [:Replay, "play a recorded trace through allocators, without the program"]
    }.freeze

    EXIT_OK = 0
    EXIT_FAILED = 1
    EXIT_USAGE = 2
    EXIT_LIMIT = 3

    module_function

    # Runs the command line.
    #
    # @param argv [Array<String>] the words after `culet`
    # @param out [IO] where reports go
    # @param err [IO] where chatter, progress and errors go
    # @return [Integer] the exit status: 0 done, 1 failed, 2 wrong usage, 3 a limit was exceeded
    def run(argv, out: $stdout, err: $stderr)
      verb, *rest = argv
      case verb
      when nil, "help", "--help", "-h" then overview(out)
      when "--version", "-v" then out.puts("culet #{VERSION}")
      else return command(verb).new(out: out, err: err).call(rest)
      end
      EXIT_OK
    rescue UsageError => e
      err.puts("culet: #{e.message}")
      EXIT_USAGE
    rescue Error => e
      err.puts("culet: #{e.message}")
      EXIT_FAILED
    rescue Errno::EPIPE
      EXIT_OK
    rescue Interrupt
      128 + Signal.list.fetch("INT")
    end

    def command(verb)
      constant, = VERBS.fetch(verb) do
        raise UsageError, "there is no verb #{verb.inspect}; `culet --help` lists them"
      end
      require_relative "cli/#{verb}"
      const_get(constant)
    end

    def overview(out)
      out.puts("culet #{VERSION}: see why a Ruby process is big, fix it, prove the gain", "",
               "usage: culet VERB [options] [-- COMMAND ...]", "")
      VERBS.each { |verb, (_, line)| out.puts(format("  %-10s %s", verb, line)) }
      out.puts("", "`culet VERB --help` shows a verb's options and examples.")
    end
  end
end
