# frozen_string_literal: true

# The Rails application of the workload rails, loaded once and served by a Puma
# cluster: three workers, forked from the process that loaded it, of five threads
# each. What counts is the PSS of all four processes.
#
# The published case: preload_app! of Puma, Unicorn and Passenger, whose workers
# are to share what was loaded before the fork and in fact copy ever more of it
# (Puma's "fork_worker" and nakayoshi_fork, Pitchfork's reforking).
#
# PORT is the TCP port of 127.0.0.1, CULET_WORKLOAD_DIR a directory for the
# database; SIGTERM ends it. CULET_SCALE multiplies the number of posts.

require_relative "rails/cluster"

Cluster.new(port: Integer(ENV.fetch("PORT"))).run
