# frozen_string_literal: true

require_relative "culet/native"
return if Culet::Native.another_copy?(__FILE__, "culet")

require_relative "culet/version"

# Find out why a Ruby process is large, fix it, prove the gain. This file loads the native extension and nothing else;
# the command line is separate.
#
# The extension defines:
# - Culet.allocator: a Hash with the malloc of this process (:name, :version, :library); :active is true if it is culet
# - Culet.stats: a Hash of bytes and blocks of that malloc, or nil if it has no statistics. glibc: :heap_bytes,
#   :used_bytes, :free_bytes, :large_blocks, :large_bytes, :arenas; culet: these, all of allocator/src/stats.h, and
#   :classes, an Array with one Hash for each size class in use
# - Culet.trim: returns free memory to the kernel; an Integer, by how many bytes RSS fell
# - Culet.trim_stats: a Hash with the statistics of the trims of this process
module Culet
  autoload :Warmup, File.expand_path("culet/warmup", __dir__)
  Native.load

  # Writes a snapshot of this process for `culet report`, `map` and `diff`, with the sizes of its Ruby objects. Counting
  # pauses Ruby for some 25 ms per million objects; then culet-scope pauses the process in slices of at most 20 ms.
  #
  # @param path [String] the file; it is private (mode 0600) and appears when it is complete
  # @return [String] the path
  # @raise [Culet::Error] when the process cannot be read or the file cannot be written
  def self.snapshot(path)
    require_relative "culet/scope"
    read = own_streams(objects: true)
    Scope::Series.new(path).write { |series| series.add(read.call) }
    path
  end

  # The report of this process, as `culet report --json` prints it. culet-scope pauses the process in slices of at most
  # 20 ms, and reads it up to three times if its memory changes meanwhile.
  #
  # @param objects [Boolean] whether to count the Ruby objects, which pauses Ruby for some 25 ms per million
  # @return [Hash{String => Object}] the keys of docs/json.md
  # @raise [Culet::Error] when the process cannot be read
  def self.report(objects: true)
    require_relative "culet/scope"
    require_relative "culet/tools/report"
    read = own_streams(objects: objects, chunks: 0)
    packed = Scope::PackedSnapshot.new(name: "the output of culet-scope", environment: ENV.to_h, &read)
    Report::Document.new(Report.retry_until_consistent { packed.snapshot }).to_h
  end

  # @param objects [Boolean] whether to count the Ruby objects, once
  # @param options [Hash] for Scope::OwnReader
  # @return [Proc] reads this process at each call and returns the stream
  def self.own_streams(objects:, **options)
    require_relative "culet/model/agent/records"
    records = Agent::Records.own if objects && native?
    reader = Scope::OwnReader.new(admit: native? ? method(:admit_reader) : nil, **options)
    -> { records ? records.stream(reader.stream) : reader.stream }
  end
  private_class_method :own_streams

  # Prepares this process for forking. Call it once, after everything is loaded and before the first fork. In order, it
  # sends GET requests to the application (warnings go to stderr; Active Record connections are closed, other
  # connections must be closed by the caller), calls the block, runs Process.warmup (Ruby 3.3 and later) or comparable
  # steps and a garbage collection, and calls Culet.trim.
  #
  # @param requests [Array<String>] paths ("/issues?page=2") or URLs; default: Culet::Warmup.requests, which is empty
  #   until it is set
  # @param app [#call, nil] a Rack application; nil: Rails.application
  # @param steps [Array<Symbol>, nil] in this order, instead of the default of this Ruby: :ruby (Process.warmup),
  #   :collect, :compact, :promote, :trim
  # @yield further preparation, after the requests
  # @return [Hash] :resident_before_bytes, :resident_after_bytes (Integers; nil without /proc), :trimmed_bytes (Integer;
  #   nil without a trim), :seconds (Float), :steps (Array<String>, those that ran, in order), :costs (by step, a Hash
  #   of :seconds and :resident_bytes)
  # @raise [ArgumentError] for an unknown step or an invalid address
  def self.warmup(requests: nil, app: nil, steps: nil, &block)
    Warmup.call(requests: requests || Warmup.requests, app: app, steps: steps, &block)
  end

  # @return [Boolean] whether the native extension is loaded; without it Culet.allocator, .stats and .trim raise
  def self.native? = Native.loaded?

  unless native?
    # @raise [Culet::Error] always, with the reason
    def self.allocator = raise(Error, Native.missing_reason("culet.so"))

    # @raise [Culet::Error] always, with the reason
    def self.stats = raise(Error, Native.missing_reason("culet.so"))

    # @raise [Culet::Error] always, with the reason
    def self.trim = raise(Error, Native.missing_reason("culet.so"))

    # @raise [Culet::Error] always, with the reason
    def self.trim_stats = raise(Error, Native.missing_reason("culet.so"))
  end
end

require_relative "culet/rails_hook"
