# frozen_string_literal: true

require_relative "../errors"
require_relative "trace/binaries"
require_relative "trace/header"
require_relative "trace/packing"
require_relative "trace/destination"
require_relative "trace/recording"

module Culet
  # Records every allocation of a program. The recorder is a C library (trace/recorder), preloaded before the allocator;
  # trace/format.h describes the files.
  #
  #   Recording    runs a command with the recorder
  #   Buffer       shared memory for the latest events, copied to the files
  #   Destination  the trace files of a recording
  #   Header       the metadata of a file
  #   Packing      removes unused space from a file
  module Trace
  end
end
