# frozen_string_literal: true

require "json"
require_relative "../../version"
require_relative "firefox_tables"

module Culet
  module Profile
    # The profile for https://profiler.firefox.com, in its processed format (docs-developer/CHANGELOG-formats.md of
    # github.com/firefox-devtools/profiler; older versions are upgraded there): for each process a thread per view, with
    # a native allocation for each site.
    class Firefox
      FORMAT_VERSION = 36
      PROCESSED_VERSION = 70
      NO_MARKERS = { "length" => 0, "category" => [], "data" => [], "endTime" => [], "name" => [], "phase" => [],
                     "startTime" => [] }.freeze
      NO_SAMPLES = { "length" => 0, "stack" => [], "time" => [], "weight" => nil, "weightType" => "samples" }.freeze
      private_constant :FORMAT_VERSION, :PROCESSED_VERSION, :NO_MARKERS, :NO_SAMPLES

      # @param data [Data]
      # @param view [Symbol, String] the thread that comes first
      def initialize(data, view: :live)
        @data = data
        @view = view.to_s
        @tables = FirefoxTables.new(data.recordings.flat_map(&:mappings))
      end

      # @return [String] a JSON document
      def to_s
        threads = @data.processes.each_with_index.flat_map { |process, at| threads(process, at) }
        # A profile has at least one.
        threads << thread(@data.recordings.first, 0, @view, []) if threads.empty?
        threads.each_with_index { |thread, at| thread["tid"] = at + 1 }
        JSON.generate("meta" => meta(threads), "libs" => @tables.libraries, "pages" => [], "counters" => [],
                      "profilerOverhead" => [], "shared" => @tables.to_h, "threads" => threads)
      end

      private

      def started = @started ||= @data.recordings.map(&:started_at).min

      def milliseconds(time) = ((time - started) * 1000).round(3)

      def meta(threads)
        { "version" => FORMAT_VERSION, "preprocessedProfileVersion" => PROCESSED_VERSION, "interval" => 1,
          "startTime" => (started.to_r * 1000).to_f, "profilingStartTime" => 0,
          "profilingEndTime" => milliseconds(@data.recordings.map(&:taken_at).max), "processType" => 0,
          "stackwalk" => 1, "debug" => false, "symbolicated" => true, "sourceCodeIsNotOnSearchfox" => true,
          "product" => product, "platform" => "Linux", "oscpu" => RbConfig::CONFIG["arch"],
          "importedFrom" => "culet #{VERSION}", "markerSchema" => [],
          "sampleUnits" => { "time" => "ms", "eventDelay" => "ms", "threadCPUDelta" => "ns" },
          "categories" => FirefoxTables.categories, "keepProfileThreadOrder" => true,
          "initialVisibleThreads" => threads.each_index.to_a, "initialSelectedThreads" => [selected(threads)] }
      end

      def product
        names = @data.recordings.map(&:name)
        names.size > 1 ? "#{names.first} and #{names.size - 1} more" : names.first
      end

      def threads(process, at)
        [@view, *(VIEWS - [@view])].filter_map do |view|
          sites = process.sites(view).reject { |site| site.bytes.round.zero? }
          thread(process.recordings.first, at, view, sites) unless sites.empty?
        end
      end

      # @return [Integer] the thread that a reader sees first: of the chosen view, that of the largest process
      def selected(threads)
        threads.each_index.max_by do |at|
          threads[at]["name"] == @view ? threads[at].dig("nativeAllocations", "weight").sum.abs : -1
        end
      end

      def thread(recording, at, view, sites)
        { "name" => view, "processType" => "default", "processName" => recording.name, "isMainThread" => view == @view,
          "processStartupTime" => milliseconds(recording.started_at), "processShutdownTime" => nil,
          "registerTime" => milliseconds(recording.started_at), "unregisterTime" => nil, "pausedRanges" => [],
          "pid" => pid(recording, at), "samples" => NO_SAMPLES, "markers" => NO_MARKERS,
          "nativeAllocations" => allocations(sites) }
      end

      # Two profiles of one process are two processes there.
      def pid(recording, at)
        before = @data.recordings.first(at).count { |one| one.pid == recording.pid }
        before.zero? ? recording.pid.to_s : "#{recording.pid}.#{before}"
      end

      # The Firefox Profiler takes the first row's time for the start, so there is always one.
      def allocations(sites)
        rows = sites.map { |site| [@tables.stack(site), site.bytes.round] }
        rows = [[nil, 0]] if rows.empty?
        { "length" => rows.size, "time" => Array.new(rows.size, 0), "stack" => rows.map(&:first),
          "weight" => rows.map(&:last), "weightType" => "bytes" }
      end
    end
  end
end
