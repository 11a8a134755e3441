# frozen_string_literal: true

# As the workload cluster, but the process that loaded the application tidies up
# before it forks: garbage collection, compaction, free memory back to the kernel.
#
# The published case: Process.warmup of Ruby 3.3 (bugs.ruby-lang.org, feature
# 18885), before it nakayoshi_fork: what is moved and freed before the fork need
# not be copied by every worker after it.
#
# PORT is the TCP port of 127.0.0.1, CULET_WORKLOAD_DIR a directory for the
# database; SIGTERM ends it. CULET_SCALE multiplies the number of posts.

require_relative "rails/cluster"
require_relative "rails/warmup"

Cluster.new(port: Integer(ENV.fetch("PORT")), before_fork: Warmup.new).run
