# frozen_string_literal: true

# Configuration for bench/redmine/measure. PORT: on 127.0.0.1. MEASURED_MODE:
#
#   single              one process of eight threads
#   cluster             three forked workers of five threads, of a preloaded application
#   warm                the same with a warm-up before the fork without culet (workloads/rails/warmup.rb)
#   plugin              the same with `plugin :culet`
#   requests            the same with PAGES, one of each kind of the load, named for the plugin
#   steps=NAME+NAME...  the same with these steps of Culet.warmup alone; steps=none for the cost of the measurement
#
# puma/plugin/measured.rb reads the process just before the fork, after all of this.

PAGES = %w[/ /projects /projects/measured-1 /projects/measured-1/issues /issues/2 /projects/measured-1/activity
           /projects/measured-1/wiki /projects/measured-1/news /issues /projects/measured-1/issues.csv
           /projects/measured-1/issues/calendar].freeze

mode = ENV.fetch("MEASURED_MODE")
bind "tcp://127.0.0.1:#{Integer(ENV.fetch("PORT"))}"
environment "production"
quiet

if mode == "single"
  workers 0
  threads 8, 8
else
  workers 3
  threads 5, 5
  preload_app!
  before_fork { ActiveRecord::Base.connection_handler.clear_all_connections!(:all) }
  case mode
  when "warm"
    require_relative "../../workloads/rails/warmup"
    before_fork { Warmup.new.call }
  when "plugin"
    plugin :culet
  when "requests"
    plugin :culet
    Culet::Warmup.requests = PAGES
  when /\Asteps=/
    require "culet"
    names = Regexp.last_match.post_match.split("+").map(&:to_sym) - [:none]
    before_fork { Culet.warmup(steps: names) }
  end
  plugin :measured
end
