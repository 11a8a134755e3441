# frozen_string_literal: true

require_relative "profile/recording"
require_relative "profile/data"
require_relative "profile/difference"
require_relative "profile/document"

module Culet
  # The profile of memory as facts: what a process has written, and what follows from it.
  #
  #   Recording   one process's stream (sampler/core/profile.h), checked; Stream: its text, and where it is from
  #   Symbols, AddressSpace   names of native addresses; addresses in the mappings of several processes
  #   Stacks      stacks of Frames; Site: what one stack has allocated, as an Estimate
  #   Data        recordings merged: the sites of each view, sums by line, gem and so on
  #   Difference  two Data, the later less the earlier
  #   Document    the sites as JSON
  module Profile
  end
end
