# frozen_string_literal: true

require_relative "culet/version"
require_relative "culet/errors"
require_relative "culet/native"

# See why a Ruby process is big, fix it, prove the gain. Loading this costs a
# process the native extension and nothing else; the command line is apart.
#
# From the extension come:
# - Culet.allocator: a Hash, which malloc serves this process (:name, :version, :library) and whether it is culet (:active)
# - Culet.stats: a Hash of what that malloc holds, in bytes and blocks, or nil where it does not tell: under glibc
#   :heap_bytes, :used_bytes, :free_bytes, :large_blocks, :large_bytes; under culet these and all that
#   allocator/src/stats.h names, with :classes, an Array of Hashes, one for each size class in use
# - Culet.trim: gives free memory back to the kernel now; how many bytes fewer are resident then, an Integer
# - Culet.trim_stats: a Hash of what trims have done in this process so far, see ext/culet/trim/trim.c
module Culet
  autoload :Warmup, File.expand_path("culet/warmup", __dir__)
  Native.load

  # Keeps what this process's memory consists of in a file, for `culet report`, `map` and `diff`, with what its Ruby
  # objects hold: counting them stops all of Ruby for some 25 ms a million. A program is started that
  # pauses this process for a few slices of at most 20 ms; nothing is allocated meanwhile, nothing stays loaded in it
  # but the Ruby files this needs.
  #
  # @param path [String] the file; it gets the mode 0600 and bears its name once it is whole
  # @return [String] the path
  # @raise [Culet::Error] when the process may not be read or the file not be written; the message says why
  def self.snapshot(path)
    require_relative "culet/scope"
    read = own_streams(objects: true)
    Scope::Series.new(path).write { |series| series.add(read.call) }
    path
  end

  # Where this process's memory is: what `culet report --json` says of it. A program is started that pauses this process
  # for slices of at most 20 ms, up to three times where the process changes meanwhile.
  #
  # @param objects [Boolean] whether to count what the Ruby objects hold as well, as in a snapshot: this stops all of Ruby
  #   for some 25 ms a million
  # @return [Hash{String => Object}] the keys of docs/json.md
  # @raise [Culet::Error] when the process may not be read; the message says why
  def self.report(objects: true)
    require_relative "culet/scope"
    require_relative "culet/tools/report"
    read = own_streams(objects: objects, chunks: 0)
    snapshot = Report.steady { Scope::Builder.new(read.call, name: "what culet-scope wrote").call }
    Report::Document.new(snapshot).to_h
  end

  # @param objects [Boolean] whether what Ruby's objects hold is counted, once
  # @param options [Hash] for Scope::OwnReader
  # @return [Proc] reads this process each time it is called, and returns the stream
  def self.own_streams(objects:, **options)
    require_relative "culet/runtime/agent/supplement"
    supplement = Agent::Supplement.own if objects && native?
    reader = Scope::OwnReader.new(admit: native? ? method(:admit_reader) : nil, **options)
    -> { supplement ? supplement.stream(reader.stream) : reader.stream }
  end
  private_class_method :own_streams

  # Makes this process ready for being forked. To be called once, when everything is loaded, before the first fork. First
  # the application is asked for some of its pages, if any are named (GET alone; problems are told on stderr and end
  # nothing; Active Record's connections are closed then, others are yours to close); then comes the block; then
  # Process.warmup where there is one (Ruby 3.3) and a collection, else what of its steps pays and this Ruby has; then
  # Culet.trim, which is all that allocators other than glibc's get from it. Takes some collections' time, and the requests'.
  #
  # @param requests [Array<String>] paths ("/issues?page=2") or whole addresses; by default Culet::Warmup.requests, which
  #   are none as long as nobody names any
  # @param app [#call, nil] a Rack application; nil: Rails.application
  # @param steps [Array<Symbol>, nil] instead of the default of this Ruby, in this order: :ruby (Process.warmup), :collect,
  #   :compact, :promote, :strings, :trim
  # @yield whatever else can be settled before the fork
  # @return [Hash] :resident_before_bytes, :resident_after_bytes (Integers; nil without /proc), :trimmed_bytes (by the
  #   trim alone; nil where the allocator cannot), :seconds (Float), :steps (Array<String>, what was done, in order), :costs
  #   (by step a Hash of :seconds and :resident_bytes after it)
  # @raise [ArgumentError] for a step or an address that is none
  def self.warmup(requests: nil, app: nil, steps: nil, &block)
    require_relative "culet/warmup"
    Warmup.call(requests: requests || Warmup.requests, app: app, steps: steps, &block)
  end

  # @return [Boolean] whether the native extension is here; without it Culet.allocator, Culet.stats and Culet.trim raise
  def self.native? = Native.loaded?

  unless native?
    # @raise [Culet::Error] always; says what the build lacked
    def self.allocator = raise(Error, Native.missing_reason("culet.so"))

    # @raise [Culet::Error] always; says what the build lacked
    def self.stats = raise(Error, Native.missing_reason("culet.so"))

    # @raise [Culet::Error] always; says what the build lacked
    def self.trim = raise(Error, Native.missing_reason("culet.so"))

    # @raise [Culet::Error] always; says what the build lacked
    def self.trim_stats = raise(Error, Native.missing_reason("culet.so"))
  end
end

require_relative "culet/railtie" if defined?(Rails::Railtie)
