# frozen_string_literal: true

# Loads what Culet.report, Culet.snapshot and Culet::Profile.report need. Otherwise their first call does, in which Ruby
# waits for its turn at each file beside busy threads, and which a trap handler cannot make.
require_relative "../culet"
require_relative "model/agent/records"
require_relative "model/profile"
require_relative "scope"
require_relative "tools/report"
