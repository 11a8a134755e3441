# frozen_string_literal: true

# Loads what Culet.report and Culet.snapshot need. Otherwise their first call does, in which Ruby waits for its turn at
# each file beside busy threads.
require_relative "../culet"
require_relative "model/agent/records"
require_relative "scope"
require_relative "tools/report"
