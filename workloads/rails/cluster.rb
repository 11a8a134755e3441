# frozen_string_literal: true

require_relative "application"
require_relative "../shared/server"

# Puma as a cluster of workers that share the application as it was loaded.
module Cluster
  WORKERS = 3

  # Serves until SIGTERM.
  #
  # @param before_fork [#call, nil] what the loading process does before the first worker is forked
  def self.run(before_fork: nil)
    Server.run(Blog, threads: THREADS, workers: WORKERS) do |settings|
      settings.preload_app!
      settings.before_fork do
        # SQLite's connections must not be used across a fork.
        ActiveRecord::Base.connection_handler.clear_all_connections!(:all)
        before_fork&.call
      end
    end
  end
end
