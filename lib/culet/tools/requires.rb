# frozen_string_literal: true

require_relative "../errors"
require_relative "requires/document"
require_relative "requires/log"
require_relative "requires/run"

module Culet
  # The cost of each require of a program, and compiled code that never runs. The recorder is in ext/culet/requires; a
  # preloaded library (boot/syscall_counter/) counts mallocs and file-system calls.
  #
  #   Run       runs a command with the recorder
  #   Log       the recording of one process: a tree of Features
  #   Document  the JSON document of a run, the source of all reports:
  #   Table, Flame, Difference, DifferenceTable
  module Requires
  end
end
