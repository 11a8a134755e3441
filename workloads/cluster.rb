# frozen_string_literal: true

# The application of the workload rails in a Puma cluster: preloaded, with three
# forked workers of five threads each. The PSS of all four processes counts.
#
# The published case: preload_app! of Puma, Unicorn and Passenger. The workers
# share the memory of the preloaded application at first, and copy ever more of it
# (Puma's "fork_worker" and nakayoshi_fork, Pitchfork's reforking).
#
# PORT is the TCP port of 127.0.0.1, CULET_WORKLOAD_DIR a directory for the
# database; SIGTERM ends it. CULET_SCALE multiplies the number of posts.

require_relative "rails/cluster"

Cluster.run
