# frozen_string_literal: true

require "rbconfig"
require_relative "../../errors"
require_relative "bundle"

module Culet
  module Compare
    # Something to run under each allocator: one of the built-in programs, or a
    # command of the user's.
    #
    # A server is given a port in PORT and is loaded through HTTP while it is
    # measured; anything else is measured from its start to its end.
    class Workload
      DIRECTORY = File.expand_path("../../../../workloads", __dir__)
      DONE_FILE = "done"
      private_constant :DONE_FILE
      # name => [one line on what it does, server?, whose Gemfile it needs]; the program is workloads/NAME.rb.
      BUILT_IN = {
        "threads" => ["25 threads, jobs of 1,024 strings of 1 KiB, every 25th job a hundred times larger", false, nil],
        "window" => ["threads that hold a random sliding window of strings of mixed sizes, then idle", false, nil],
        "fragments" => ["threads that build, upcase, slice and join strings", false, nil],
        "mixed" => ["a server in small, without the network: requests of several kinds on five threads, sessions and a cache that turn over", false, nil],
        "hash" => ["one hash of hundreds of thousands of keys that grows, shrinks and grows", false, nil],
        "cpu" => ["short-lived small objects: trees and words", false, nil],
        "fork" => ["ten million little strings, fork, garbage collection in the parent", false, nil],
        "boot" => ["requires a large tree of real libraries", false, nil],
        "rack" => ["Puma serving a Rack application under load (installs puma and rack on first use)", true, "rack"],
        "rails" => ["a small Rails application on SQLite under Puma and load (installs rails on first use)", true, "rails"],
        "cluster" => ["the application of rails in a Puma cluster: loaded once, three forked workers", true, "rails"],
        "cluster-warm" => ["as cluster, with a warm-up and compaction before the fork", true, "rails"]
      }.freeze
      # What is run when nothing is named: no downloads, no load generator, a few minutes.
      DEFAULT = %w[threads window fragments hash].freeze

      attr_reader :name, :about

      class << self
        # @return [Array<String>] the names of the built-in ones
        def names = BUILT_IN.keys

        # @param name [String]
        # @param scale [Float] share of the normal amount of work
        # @param ruby [String] the Ruby to run it with
        # @return [Workload]
        # @raise [Culet::UsageError]
        def built_in(name, scale: 1.0, ruby: RbConfig.ruby)
          about, server, gems = BUILT_IN.fetch(name) do
            raise UsageError, "there is no workload #{name.inspect}; the built-in ones are #{names.join(", ")}, or all; " \
                              "a command of your own goes after --"
          end
          bundle = Bundle.new(name: gems, gemfile: File.join(DIRECTORY, gems, "Gemfile"), ruby: ruby) if gems
          new(name: name, about: about, command: [ruby, File.join(DIRECTORY, "#{name}.rb")], server: server, bundle: bundle,
              environment: { "CULET_SCALE" => scale.to_s }, base: unbundled)
        end

        # @param command [Array<String>] the user's own
        # @param url [LoadTarget, nil] where the command serves HTTP
        # @return [Workload]
        def command(command, url: nil)
          name = command.map { |word| quoted(word.scrub) }.join(" ")
          new(name: name, about: "your command", command: command, url: url)
        end

        private

        # Quotes as one would by hand, not a backslash before every character.
        def quoted(word) = word.match?(%r{\A[\w./:=@%+,~-]+\z}) ? word : "'#{word.gsub("'", %q('\\\\''))}'"

        # A built-in program must not get the gems that this command line was started with.
        def unbundled = defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
      end

      # @param name [String]
      # @param about [String] one line
      # @param command [Array<String>]
      # @param environment [Hash{String => String}] beyond `base`
      # @param base [Hash{String => String}] the environment without an allocator's variables
      # @param server [Boolean] a built-in server, which takes its port from PORT
      # @param url [LoadTarget, nil] of the user's server
      # @param bundle [Bundle, nil] gems to install first
      def initialize(name:, about:, command:, environment: {}, base: ENV.to_h, server: false, url: nil, bundle: nil)
        @name = name
        @about = about
        @command = command
        @environment = environment
        @base = base
        @server = server
        @url = url
        @bundle = bundle
      end

      # @return [Boolean]
      def server? = @server || !@url.nil?

      # @return [Boolean] whether it is one of the project's own
      def built_in? = BUILT_IN.key?(name)

      # @return [Boolean] whether gems are still to be installed
      def unprepared? = !(@bundle.nil? || @bundle.installed?)

      # Installs what the workload needs.
      #
      # @param log [IO] one line when that takes a while
      # @yield called several times a second; may raise to end it
      # @raise [Exclusion] when it cannot be had
      def prepare(log:, &check) = @bundle&.install(log: log, &check)

      # @return [Array<String>]
      def command = @bundle ? [@command.first, "-rbundler/setup", *@command.drop(1)] : @command

      # @param choice [Allocators::Choice]
      # @param port [Integer, nil] for a built-in server
      # @param directory [String] a scratch directory for a built-in program, which is removed after the run
      # @return [Hash{String => String}] the whole environment of a run
      def environment(choice, port: nil, directory: nil)
        # Last, since a contender's environment unsets every variable that could be a setting of an allocator.
        own = @environment.merge(@bundle ? @bundle.environment : {})
        own["PORT"] = port.to_s if @server
        own["CULET_WORKLOAD_DIR"] = directory if built_in?
        @base.merge(choice.environment(@base, isolated: true), own).compact
      end

      # When the program noted that its work was done (workloads/shared/rest.rb); what follows is rest alone.
      #
      # @param directory [String, nil] the scratch directory of the run
      # @return [Float, nil] CLOCK_MONOTONIC in seconds; nil where it noted nothing
      def done_at(directory)
        directory && Float(File.read(File.join(directory, DONE_FILE)))
      rescue Errno::ENOENT
        nil
      end

      # @return [LoadTarget] where the load goes
      def target(port) = @url || LoadTarget.local(port)
    end
  end
end

require_relative "load_target"
