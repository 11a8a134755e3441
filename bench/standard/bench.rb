# frozen_string_literal: true

# Programs that allocators are judged by, under every contender in turn: those of the public collection mimalloc-bench,
# of which the user has a checkout, and programs in Ruby.
#
#   run --> Session --> Trial (one run of one program under one contender)
#             |           +-- Malloc (which library's malloc the program calls)
#             +-- Builder (the programs of the collection) or Preparation (gems and databases of those in Ruby)
#             +-- Journal (the runs so far, for a command that goes on)
#       --> Files (what --out writes)
module StandardBench
  # Where a checkout of the collection comes from.
  SOURCE = "https://github.com/daanx/mimalloc-bench"
  # The contenders unless named; those that are not installed are left out.
  USUAL = %w[glibc jemalloc tcmalloc mimalloc culet].freeze
end

require_relative "../contenders"
%w[program catalogue ruby_programs builder preparation malloc trial journal session files].each do |name|
  require_relative name
end
