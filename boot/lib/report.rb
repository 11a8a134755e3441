# frozen_string_literal: true

require_relative "../../lib/culet/errors"
require_relative "report/document"
require_relative "report/log"
require_relative "report/run"

module Culet
  # The cost of each require of a program, and compiled code that never runs. The recorder is in boot/ext/recorder; a
  # preloaded library (boot/syscall_counter/) counts mallocs and file-system calls.
  #
  #   Run       runs a command with the recorder
  #   Log       the recording of one process: a tree of Features
  #   Document  the JSON document of a run, the source of all reports:
  #   Table, Flame, Difference, DifferenceTable
  module Boot
  end
end
