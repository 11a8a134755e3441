# frozen_string_literal: true

# says: libraries that nothing calls, beside a client library
# shape: small, threaded
# code: 20
# loads: unused
require_relative "../../load"

require_relative "../../large_sdk"
LargeSdk.load(16_000) # HERE
%w[rdoc rexml/document rss net/http openssl optparse psych erb drb].each { |name| require name }
Load.threads(3, every: 0.1) { |thread| Load.work(thread) }
Load.run(every: 0.5) { LargeSdk.call(1) }
