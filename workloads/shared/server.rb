# frozen_string_literal: true

require "puma"
require "puma/configuration"
require "puma/launcher"

# Puma at the port PORT of 127.0.0.1.
module Server
  # Serves until SIGTERM.
  #
  # @param application [#call]
  # @param threads [Integer]
  # @param workers [Integer] 0: one process
  # @yieldparam settings [Puma::DSL]
  def self.run(application, threads:, workers: 0)
    configuration = Puma::Configuration.new do |settings|
      settings.bind("tcp://127.0.0.1:#{Integer(ENV.fetch("PORT"))}")
      settings.threads(threads, threads)
      settings.workers(workers)
      settings.app(application)
      yield settings if block_given?
    end
    Puma::Launcher.new(configuration, log_writer: Puma::LogWriter.null).run
  end
end
