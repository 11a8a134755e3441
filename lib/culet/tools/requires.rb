# frozen_string_literal: true

require_relative "../errors"
require_relative "requires/document"
require_relative "requires/log"
require_relative "requires/run"

module Culet
  # What each require of a program costs, and what of the compiled code never runs. The recorder is in ext/culet
  # (requires.c), what it counts of mallocs and file-system calls comes from a preloaded library (syscall_counter/).
  #
  #   Run       runs a command with the recorder in it
  #   Log       what one process recorded: the tree of its Features
  #   Document  the figures of a run, as `--json` has them; the rest is made from them:
  #   Table, Flame, Difference, DifferenceTable
  module Requires
  end
end
