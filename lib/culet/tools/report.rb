# frozen_string_literal: true

require_relative "../model/snapshot_levels"
require_relative "../model/snapshot_verdicts"
require_relative "../scope/snapshot"
require_relative "report/holdings"
require_relative "report/inside"
require_relative "report/document"
require_relative "report/table"
require_relative "report/total"
require_relative "report/difference"
require_relative "report/difference_table"

module Culet
  # The report on a snapshot, by lib/culet/model: SnapshotLevels, and SnapshotVerdicts.
  #
  #   Holdings    which of Ruby's objects hold what malloc gave, where the process told; Inside: for a terminal
  #   Document    all of it as one JSON object
  #   Total       several processes together
  #   Table       all of it for a terminal
  #   Difference  what grew between two of them, DifferenceTable: for a terminal
  #
  # @api private
  module Report
    # How often a process is read that changes meanwhile.
    ATTEMPTS = 3
    private_constant :ATTEMPTS

    # A process that grows or shrinks while it is read does not add up. It is read again then, and the best one counts.
    #
    # @yieldreturn [Scope::Snapshot] the process as it is now
    # @return [Scope::Snapshot]
    def self.retry_until_consistent
      taken = []
      taken << yield until taken.size == ATTEMPTS || (taken.any? && SnapshotLevels.new(taken.last).explained?)
      taken.min_by { |snapshot| SnapshotLevels.new(snapshot).unexplained_bytes.abs }
    end
  end
end
