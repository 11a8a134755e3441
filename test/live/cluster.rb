# frozen_string_literal: true

# Puma with two workers on PORT of 127.0.0.1, each of which answers questions about itself.

require "culet/agent"
require "culet/auto"

threads 3, 3
bind "tcp://127.0.0.1:#{ENV.fetch("PORT")}"
workers 2
preload_app!
