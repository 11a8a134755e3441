# frozen_string_literal: true

require_relative "errors"
require_relative "scope/tool"
require_relative "scope/varints"
require_relative "scope/stream"
require_relative "scope/snapshot"
require_relative "scope/builder"
require_relative "scope/moment"
require_relative "scope/snapshot_file"
require_relative "scope/series"
require_relative "scope/reader"
require_relative "scope/own_reader"
require_relative "scope/recorder"

module Culet
  # What the memory of a running process consists of. It is read by a program, culet-scope (scope/), which writes one
  # stream for one process; scope/format.h says what is in it.
  #
  #   Tool          where the program is
  #   Reader        runs it on a process, passes on what it says; Recorder does so again and again;
  #                 OwnReader runs it on this process
  #   Stream        the bytes: header, records, checksum
  #   Builder       makes of a stream's records a Snapshot
  #   Snapshot      one process at one moment, with its parts: mappings, regions, arenas, Ruby's pages
  #   Moment        a Snapshot that is not unpacked yet
  #   SnapshotFile  one or several of them in a file; Series writes it
  module Scope
    # @param subject [String] a process number or a snapshot's name; a file whose name is a number goes by ./4242
    # @param options [Hash] how to read a process, as for Reader
    # @return [Array<Moment>] one, or those of a series in the order they were taken
    # @raise [Culet::Error] when there is no such thing or it cannot be read
    def self.moments(subject, **options)
      return SnapshotFile.moments(subject) unless process?(subject)

      stream = Reader.new(subject, **options).stream
      [Moment.new(name: "what culet-scope wrote") { stream }]
    end

    # @param subject [String]
    # @return [Boolean] whether it is a process number
    def self.process?(subject) = subject.match?(/\A\d+\z/)

    # @param subject [String] as for `moments`
    # @param options [Hash] as for `moments`
    # @return [Array<Snapshot>] all of them
    # @raise [Culet::Error] as `moments`, and when what was read is damaged
    def self.snapshots(subject, **options) = moments(subject, **options).map(&:snapshot)

    # @param subject [String] as for `moments`
    # @param options [Hash] as for `moments`
    # @return [Array<String>] the streams of all of them
    # @raise [Culet::Error] as `moments`
    def self.streams(subject, **options) = moments(subject, **options).map(&:stream)
  end
end
