# frozen_string_literal: true

# As bin/jobs of an application.
require_relative "config/environment"
require "solid_queue/cli"

SolidQueue::Cli.start(ARGV)
