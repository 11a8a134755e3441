# frozen_string_literal: true

require_relative "../errors"
require_relative "trace/tools"
require_relative "trace/header"
require_relative "trace/packing"
require_relative "trace/destination"
require_relative "trace/recording"

module Culet
  # Records every allocation of a program. The recorder itself is plain C (trace/recorder), preloaded before the
  # allocator; trace/format.h says what is in a file.
  #
  #   Recording    runs a command with the recorder and gathers its files
  #   Destination  where they go, cleared of an earlier recording
  #   Header       what a file says of itself
  #   Packing      cuts off what was reserved in a file and not used
  module Trace
  end
end
