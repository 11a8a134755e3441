# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/resque")

require "resque"

module Culet
  # `require "culet/resque"` where the workers load their jobs: with CULET_LIMIT, or culet/limit loaded before, a worker
  # keeps its memory limit (see Limit::Resque). Other processes that require this file are unchanged.
  #
  # `extend Culet::Resque` in a job class: with CULET_BLACKBOX its jobs have labels. Workers without a process for each
  # job (FORK_PER_JOB=false) need this too, because Resque has no other hook between two jobs. Jobs of Active Job in a
  # Rails application have both without it.
  module Resque
    # @return [Object] the value of the job
    def around_perform_culet(*, &job)
      Limit.throttle.pass if Resque.limit?
      return job.call unless defined?(BlackBox.running?) && BlackBox.running?

      Profile.label(job: name, &job)
    ensure
      Limit.each_boundary if Resque.limit?
    end

    # @api private
    # @return [Boolean] whether a limit is kept
    def self.limit? = defined?(Limit::Monitor) && Limit.active?

    # @api private
    # @return [void]
    def self.begin_worker
      require_relative "blackbox" if ENV["CULET_BLACKBOX"]
      require_relative "limit" if ENV.fetch("CULET_LIMIT", "off") != "off"
      return unless limit?

      require_relative "runtime/limit/resque"
      Limit::Resque.begin_worker
    end
  end
end

Resque.before_first_fork { Culet::Resque.begin_worker }
