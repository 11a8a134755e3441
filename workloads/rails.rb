# frozen_string_literal: true

# A small real Rails application under Puma with five threads: posts with comments
# in SQLite through Active Record, shown by Action View as a list, as one page and
# as JSON; every tenth request writes a comment.
#
# The published case: what Discourse, GitLab and Mastodon found for Rails servers,
# and the reason why new Rails applications preload another allocator in their
# Dockerfile (rails/rails pull request 50943).
#
# PORT is the TCP port of 127.0.0.1, CULET_WORKLOAD_DIR a directory for the
# database; SIGTERM ends it. CULET_SCALE multiplies the number of posts.

require_relative "rails/application"
require_relative "shared/server"

Server.run(Blog, threads: THREADS)
