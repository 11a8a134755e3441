# frozen_string_literal: true

# Loads what Culet.report and Culet.snapshot need, which their first call does otherwise: beside busy threads, Ruby waits
# for its turn at each file.
require_relative "../culet"
require_relative "model/agent/records"
require_relative "scope"
require_relative "tools/report"
