# frozen_string_literal: true

require_relative "../model/sharing/process_tree"
require_relative "cow/document"
require_relative "cow/table"
require_relative "cow/history"
require_relative "cow/command"

module Culet
  # How much memory forked processes still share with their parent. The facts are in model/sharing:
  #
  #   ProcessTree   a process and its descendants, each read once; ForkedProcess: one of them
  #   PageSharing   compares each resident page with the page of a related process at the same address
  #   Breakdown     sums the result up by use of the memory, as SharingBytes
  #   Comparison    compares the contents of unshared pages; Writes: the result
  #
  # and the reports here:
  #
  #   History       sharing over time; HistoryChart draws it
  #   Command       runs a command and reads it until it ends
  #   MapPage       the HTML page, with MapTables beside the map
  #   Verdicts      conclusions in sentences; Table, WritesTable, Document: the reports
  module Cow
  end
end
