# frozen_string_literal: true

require_relative "../errors"
require_relative "allocators"
require_relative "trace/tools"
require_relative "trace/header"
require_relative "replay/subject"
require_relative "replay/player"
require_relative "replay/engine"

module Culet
  # Plays a trace of `culet trace` through allocators, without the program that was recorded.
  #
  #   Subject  the trace, as what contenders are measured on
  #   Player   one play under one allocator, by the C program culet-replay
  #   Engine   every contender in turns; gathers a document like that of a comparison
  #   Table, Curves   how it is shown
  module Replay
  end
end
