# frozen_string_literal: true

require_relative "application"
require "puma"
require "puma/configuration"
require "puma/launcher"

# Puma as a cluster of workers that share the application as it was loaded.
class Cluster
  WORKERS = 3

  # @param port [Integer] TCP port of 127.0.0.1
  # @param before_fork [#call, nil] what the loading process does before the first worker is forked
  def initialize(port:, before_fork: nil)
    @port = port
    @before_fork = before_fork
  end

  # Serves until SIGTERM.
  def run = Puma::Launcher.new(configuration, log_writer: Puma::LogWriter.null).run

  private

  def configuration
    Puma::Configuration.new do |settings|
      settings.bind("tcp://127.0.0.1:#{@port}")
      settings.threads(THREADS, THREADS)
      settings.workers(WORKERS)
      settings.preload_app!
      settings.app(Blog)
      settings.before_fork { prepare }
    end
  end

  def prepare
    # SQLite's connections must not be used across a fork.
    ActiveRecord::Base.connection_handler.clear_all_connections!(:all)
    @before_fork&.call
  end
end
