# frozen_string_literal: true

# Loads the files of Culet.report, Culet.snapshot and Culet::Profile.report at boot. Without this file their first call
# loads them, which is slow beside busy threads (each `require` waits for the GVL) and impossible in a trap handler.
require_relative "../culet"
require_relative "model/agent/records"
require_relative "model/profile"
require_relative "scope"
require_relative "tools/report"
