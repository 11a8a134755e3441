# frozen_string_literal: true

require "rbconfig"
require "culet/allocators"
require "culet/tools/compare"
require_relative "../redmine/database"
require_relative "prediction_load"

# Programs that bench/explain/predictions changes as culet explain says.
module PredictionPrograms
  # The workloads of culet compare that end by themselves; here they are done over and over.
  REPEATED = %w[threads window fragments hash mixed garbage].freeze
  SERVERS = %w[rack rails cluster].freeze
  # Of a batch of requests, each from its own connection, and the pause of a connection in between.
  CONNECTIONS = 6
  PAUSE = 0.1
  REDMINE = File.join(Bench::ROOT, "bench/redmine/config.ru")
  # A cluster of a preloaded application, for Puma's configuration.
  CLUSTER = <<~RUBY
    bind "tcp://127.0.0.1:\#{ENV.fetch("PORT")}"
    environment "production"
    workers 3
    threads 5, 5
    preload_app!
    before_fork { ActiveRecord::Base.connection_handler.clear_all_connections!(:all) }
  RUBY

  # One of them. configuration: of Puma, to which lines can be added; nil: it has none; load: from a port makes a load.
  Program = Struct.new(:name, :command, :environment, :configuration, :load, :folder, keyword_init: true) do
    # @return [Boolean] whether a line of Ruby that boots with the program can be added
    def line?(line)
      return line.start_with?("plugin", "preload_app!") if configuration

      name == "sidekiq" && line.start_with?("require")
    end
  end

  module_function

  def names = [*REPEATED, *SERVERS, "sidekiq", "generated", *("redmine" if File.exist?(Database::FOLDER))]

  # @param name [String] one of names
  # @return [Program]
  def program(name)
    case name
    when *REPEATED then repeated(name)
    when *SERVERS then server(name)
    else public_send(name)
    end
  end

  def repeated(name)
    file = Culet::Compare::Workload.built_in(name).command.last
    Program.new(name: name, command: [RbConfig.ruby, "-e", "loop { load(ARGV.first, true) }", file], environment: {},
                load: ->(_) {})
  end

  def server(name)
    workload = Culet::Compare::Workload.built_in(name)
    workload.prepare(log: $stderr)
    own = workload.environment(Culet::Allocators.parse("glibc")).reject { |key, value| ENV[key] == value }
    Program.new(name: name, command: workload.command, environment: own, configuration: "", load: requests(%w[/]))
  end

  def sidekiq
    bundle = Culet::Compare::Bundle.new(name: "explain", gemfile: File.join(Bench::ROOT, "test/explain/Gemfile"))
    bundle.install(log: $stderr)
    jobs = File.join(__dir__, "prediction_jobs.rb")
    Program.new(name: "sidekiq", environment: bundle.environment, load: ->(_) { PredictionLoad::Jobs.new(10, 0.2) },
                command: [*binary("sidekiq", "sidekiq"), "-r", jobs, "-c", "10", "-t", "1"])
  end

  # The application that `rails new` writes, with a scaffold of posts.
  def generated
    require_relative "prediction_rails"
    application = PredictionRails.new.tap(&:make)
    Program.new(name: "generated", folder: application.folder, environment: application.environment,
                configuration: application.configuration, command: binary("puma", "puma"),
                load: requests(application.paths))
  end

  # In the root of bench/debian.
  def redmine
    Database.fill
    Program.new(name: "redmine", environment: Database::ENVIRONMENT, configuration: CLUSTER,
                command: ["puma", REDMINE], load: requests(%w[/measured]))
  end

  # @return [Array<String>] that run a command of a gem of the bundle
  def binary(gem, name) = [RbConfig.ruby, "-rbundler/setup", "-e", "load Gem.bin_path('#{gem}', '#{name}')", "--"]

  def requests(paths) = ->(port) { PredictionLoad::Requests.new(port, paths, CONNECTIONS, PAUSE) }
end
