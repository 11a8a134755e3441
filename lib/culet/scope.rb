# frozen_string_literal: true

require_relative "errors"
require_relative "scope/varints"
require_relative "scope/stream"
require_relative "scope/snapshot"
require_relative "scope/builder"
require_relative "scope/snapshot_file"
require_relative "scope/series"
require_relative "scope/reader"
require_relative "scope/own_reader"
require_relative "scope/recorder"

module Culet
  # The memory of a running process. The program culet-scope (reader/) reads a process and writes one stream, described
  # in reader/format.h.
  #
  #   Reader        runs culet-scope on a process; Recorder repeatedly; OwnReader on this process
  #   Stream        the bytes: header, records, checksum
  #   Builder       makes a Snapshot of a stream
  #   Snapshot      one process at one time: mappings, regions, arenas, Ruby's pages
  #   PackedSnapshot   a Snapshot that is not unpacked yet
  #   SnapshotFile  one or more snapshots in a file; Series writes it
  #
  # @api private
  module Scope
    # @param subject [String] a process number or a snapshot file; a file with a number as its name is written ./4242
    # @param options [Hash] how to read a process, as for Reader
    # @return [Array<PackedSnapshot>] one, or those of a series in order of time
    # @raise [Culet::Error] when it does not exist or cannot be read
    def self.packed_snapshots(subject, **options)
      return SnapshotFile.packed_snapshots(subject) unless process?(subject)

      [Reader.new(subject, **options).packed]
    end

    # @param subject [String]
    # @return [Boolean] whether it is a process number
    def self.process?(subject) = subject.match?(/\A\d+\z/)
  end
end
