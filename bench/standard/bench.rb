# frozen_string_literal: true

# Programs of the public collection mimalloc-bench under every contender in turn. Their code is not part of this
# project: the user has a checkout of it.
#
#   run --> Session --> Trial (one run of one program under one contender)
#             |           +-- Malloc (which library's malloc the program calls)
#             +-- Builder (the programs, from the checkout)
#       --> Tables
module StandardBench
  # Where a checkout of the collection comes from.
  SOURCE = "https://github.com/daanx/mimalloc-bench"
  # The contenders unless named; those that are not installed are left out.
  USUAL = %w[glibc jemalloc tcmalloc mimalloc culet].freeze
end

require_relative "../contenders"
%w[program catalogue builder malloc trial session tables].each { |name| require_relative name }
