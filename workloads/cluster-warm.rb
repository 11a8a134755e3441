# frozen_string_literal: true

# The workload cluster with a warm-up before the fork: garbage collection, compaction,
# free memory returned to the kernel.
#
# The published case: Process.warmup of Ruby 3.3 (bugs.ruby-lang.org, feature
# 18885), and nakayoshi_fork before it: pages that change before the fork are not
# copied by every worker.
#
# PORT is the TCP port of 127.0.0.1, CULET_WORKLOAD_DIR a directory for the
# database; SIGTERM ends it. CULET_SCALE multiplies the number of posts.

require_relative "rails/cluster"
require_relative "rails/warmup"

Cluster.run(before_fork: Warmup.new)
