# frozen_string_literal: true

# Benchmarks of the allocator alone: small programs (probes) that each put one pattern to an allocator, run under every
# contender in turn.
#
#   run --> Session --> Trial (one run of one probe under one contender)
module AllocatorBench
  # The folder of the probes.
  PROBES = File.expand_path("probes", __dir__)
  # The contenders unless named; those that are not installed are left out.
  USUAL = %w[glibc glibc:arena_max=2 jemalloc tcmalloc mimalloc rpmalloc culet].freeze
end

require_relative "../contenders"
%w[probe catalogue trial session instructions].each do |name|
  require_relative name
end
