# frozen_string_literal: true

require "json"
require_relative "../../version"

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

    # The tables that all threads of a file for the Firefox Profiler share: stacks, frames, functions, libraries and
    # their strings. Rows refer to rows of other tables by their numbers.
    class FirefoxTables
      # Categories of frames and their colours; the first grey one is the default.
      CATEGORIES = { unknown: %w[Other grey], application: %w[Application yellow], gem: %w[Gems green],
                     ruby: %w[Ruby blue], library: %w[Native orange] }.freeze
      NUMBERS = CATEGORIES.keys.each_with_index.to_h.freeze
      # A resource that is a library.
      LIBRARY = 1
      Function = Struct.new(:name, :source, :library, :script, :relevant)
      Row = Struct.new(:function, :line, :category)
      private_constant :NUMBERS, :LIBRARY, :Function, :Row

      # @return [Array<Hash>] for the file's `meta`
      def self.categories
        CATEGORIES.values.map { |name, color| { "name" => name, "color" => color, "subcategories" => ["Other"] } }
      end

      # @param mappings [Array<Recording::Mapping>] of all processes
      def initialize(mappings)
        @mappings = mappings.to_h { |one| [File.basename(one.path), one] }
        @strings = {}
        @sources = {}
        @libraries = {}
        @functions = {}
        @frames = {}
        @stacks = {}
        @numbers = {}.compare_by_identity
      end

      # @return [Integer] number of its stack
      def stack(site)
        numbers = site.frames.reverse_each.map { |frame| @numbers[frame] ||= frame(frame) }
        numbers << object(site.class_name) if site.class_name
        numbers.reduce(nil) { |caller, frame| number(@stacks, [caller, frame]) }
      end

      # @return [Hash{String => Hash, Array}] the file's `shared`
      def to_h
        parts = { "stackTable" => stacks, "frameTable" => frames, "funcTable" => functions,
                  "resourceTable" => resources, "nativeSymbols" => empty(%w[libIndex address name functionSize]),
                  "sources" => sources, "sourceLocationTable" => empty(%w[source line column]) }
        # The strings are complete only now.
        parts.merge("stringArray" => @strings.keys)
      end

      # @return [Array<Hash>] the file's `libs`
      def libraries
        @libraries.keys.map do |name|
          mapping = @mappings[name]
          path = mapping ? mapping.path : name
          { "arch" => RbConfig::CONFIG["host_cpu"], "name" => name, "path" => path, "debugName" => name,
            "debugPath" => path, "breakpadId" => breakpad(mapping&.build_id), "codeId" => mapping&.build_id }
        end
      end

      private

      def number(table, key) = table[key] ||= table.size

      def string(text) = number(@strings, text.to_s)

      def frame(frame)
        # Ruby code counts as what the Firefox Profiler calls scripts; Ruby's methods in C belong to its stacks.
        function = Function.new(string(frame.method), frame.file && number(@sources, string(frame.file)),
                                frame.library && number(@libraries, frame.library), frame.ruby?,
                                frame.interpreted? && !frame.ruby?)
        number(@frames, Row.new(number(@functions, function), frame.line, NUMBERS.fetch(frame.kind)))
      end

      def object(class_name)
        function = Function.new(string(class_name), nil, nil, false, true)
        number(@frames, Row.new(number(@functions, function), nil, NUMBERS.fetch(:ruby)))
      end

      # An id that Breakpad makes of a build id: a GUID, whose first three numbers are little-endian, and an age of 0.
      def breakpad(build_id)
        bytes = [build_id.to_s].pack("H*").ljust(16, "\0").byteslice(0, 16)
        format("%08X%04X%04X%s0", *bytes.unpack("L<S<2"), bytes.byteslice(8, 8).unpack1("H*").upcase)
      end

      def empty(columns) = { "length" => 0, **columns.to_h { |name| [name, []] } }

      # @param columns [Hash] name => block's result for each row, or a value for all
      def table(rows, columns)
        columns = columns.transform_values do |value|
          value.respond_to?(:call) ? rows.map(&value) : Array.new(rows.size, value)
        end
        { "length" => rows.size, **columns }
      end

      def stacks
        rows = @stacks.keys.each_with_index.to_a
        table(rows, "frame" => ->(((_, frame), _)) { frame },
                    "prefixOffset" => ->(((caller, _), at)) { caller ? at - caller : 0 })
      end

      def frames
        libraries = @functions.keys.map(&:library)
        table(@frames.keys, "address" => -1, "lib" => ->(row) { libraries[row.function] || -1 }, "inlineDepth" => 0,
                            "category" => :category.to_proc, "subcategory" => 0, "func" => :function.to_proc,
                            "nativeSymbol" => nil, "innerWindowID" => 0, "line" => :line.to_proc, "column" => nil,
                            "originalLocation" => nil)
      end

      def functions
        table(@functions.keys, "name" => :name.to_proc, "isJS" => :script.to_proc, "relevantForJS" => :relevant.to_proc,
                               "resource" => ->(row) { row.library || -1 }, "source" => :source.to_proc,
                               "lineNumber" => nil, "columnNumber" => nil, "originalLocation" => nil)
      end

      # One for each library, in the same order.
      def resources
        table(@libraries.keys, "name" => ->(name) { string(name) }, "host" => nil, "type" => LIBRARY)
      end

      def sources
        table(@sources.keys, "id" => nil, "filename" => :itself.to_proc, "startLine" => 1, "startColumn" => 1,
                             "sourceMapURL" => nil, "content" => nil)
      end
    end
  end
end
