# frozen_string_literal: true

require "rbconfig"
require_relative "../../errors"
require_relative "bundle"

module Culet
  module Compare
    # A program to run with each allocator: a built-in one or the user's command. A server receives HTTP requests while
    # it is measured; a built-in one takes its port from PORT. Other programs are measured from start to end.
    class Workload
      DIRECTORY = File.expand_path("../../../../workloads", __dir__)
      DONE_FILE = "done"
      private_constant :DONE_FILE
      # name => [description, server?, directory of its Gemfile]; the program is workloads/NAME.rb.
      BUILT_IN = {
        "threads" => ["25 threads with jobs of 1,024 strings of 1 KiB; every 25th job is 100 times larger", false, nil],
        "window" => ["threads with a random sliding window of strings of mixed sizes, then idle", false, nil],
        "fragments" => ["threads that build, upcase, slice and join strings", false, nil],
        "mixed" => ["a simulated web server: requests of several kinds on five threads, " \
                    "sessions and a cache that expire", false, nil],
        "hash" => ["a hash of several hundred thousand keys that grows, shrinks and grows again", false, nil],
        "garbage" => ["strings of 3 to 10 KB by turns, of which fifty are kept", false, nil],
        "cpu" => ["short-lived small objects: trees and words", false, nil],
        "fork" => ["ten million short strings, fork, garbage collection in the parent", false, nil],
        "boot" => ["requires many libraries of the standard distribution", false, nil],
        "rack" => ["a Rack application in Puma under load (installs puma and rack on first use)", true, "rack"],
        "rails" => ["a small Rails application with SQLite in Puma under load (installs rails on first use)",
                    true, "rails"],
        "cluster" => ["the Rails application in a Puma cluster: preloaded, three forked workers", true, "rails"],
        "cluster-warm" => ["cluster with Process.warmup before the fork", true, "rails"]
      }.freeze
      # The default: no downloads, no load generator, a few minutes.
      DEFAULT = %w[threads window fragments hash].freeze

      attr_reader :name, :about

      class << self
        # @return [Array<String>] names of the built-in workloads
        def names = BUILT_IN.keys

        # @param scale [Float] factor for the amount of work
        # @param ruby [String] path of the Ruby that runs it
        # @return [Workload]
        # @raise [Culet::UsageError]
        def built_in(name, scale: 1.0, ruby: RbConfig.ruby)
          about, server, gems = BUILT_IN.fetch(name) do
            raise UsageError, "unknown workload #{name.inspect}; choose from #{names.join(", ")}, or all, " \
                              "or give a command after --"
          end
          bundle = Bundle.new(name: gems, gemfile: File.join(DIRECTORY, gems, "Gemfile"), ruby: ruby) if gems
          new(name: name, about: about, command: [ruby, File.join(DIRECTORY, "#{name}.rb")],
              server: server, bundle: bundle,
              environment: { "CULET_SCALE" => scale.to_s }, base: unbundled)
        end

        # @param command [Array<String>] the user's
        # @param url [LoadTarget, nil] address of the server that the command starts
        # @return [Workload]
        def command(command, url: nil)
          name = command.map { |word| quoted(word.scrub) }.join(" ")
          new(name: name, about: "your command", command: command, url: url)
        end

        private

        # Unlike Shellwords, quotes instead of escaping every character.
        def quoted(word) = word.match?(%r{\A[\w./:=@%+,~-]+\z}) ? word : "'#{word.gsub("'", "'\\\\''")}'"

        # A built-in program must not load the gems of this process.
        def unbundled = defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
      end

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

      def server? = @server || !@url.nil?

      def built_in? = BUILT_IN.key?(name)

      # @return [Boolean] whether gems must be installed first
      def unprepared? = !(@bundle.nil? || @bundle.installed?)

      # Installs the gems.
      #
      # @param log [IO]
      # @yield called several times a second; may raise to stop it
      # @raise [Benchmark::Exclusion] when the installation fails
      def prepare(log:, &check) = @bundle&.install(log: log, &check)

      # @return [Array<String>]
      def command = @bundle ? [@command.first, "-rbundler/setup", *@command.drop(1)] : @command

      # @param port [Integer, nil] for a built-in server
      # @param directory [String] a scratch directory for a built-in program
      # @return [Hash{String => String}] the complete environment of a run
      def environment(choice, port: nil, directory: nil)
        # Last: a candidate's environment unsets all settings of allocators.
        own = @environment.merge(@bundle ? @bundle.environment : {})
        own["PORT"] = port.to_s if @server
        own["CULET_WORKLOAD_DIR"] = directory if built_in?
        @base.merge(choice.environment(@base, isolated: true), own).compact
      end

      # When the program finished its work (workloads/shared/rest.rb).
      #
      # @param directory [String, nil] the scratch directory of the run
      # @return [Float, nil] CLOCK_MONOTONIC in seconds; nil where it does not report it
      def done_at(directory)
        directory && Float(File.read(File.join(directory, DONE_FILE)))
      rescue Errno::ENOENT
        nil
      end

      # @return [LoadTarget]
      def target(port) = @url || LoadTarget.local(port)
    end
  end
end

require_relative "load_target"
