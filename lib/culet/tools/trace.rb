# frozen_string_literal: true

require_relative "../errors"
require_relative "../model/trace/files"
require_relative "trace/recording"

module Culet
  # Records every allocation of a program. The recorder is a C library (replay/recorder), preloaded before the
  # allocator; replay/format.h describes the files.
  #
  #   Recording    runs a command with the recorder
  #   Files        the trace files of a recording; Header: the metadata of a file (model/trace)
  module Trace
  end
end
