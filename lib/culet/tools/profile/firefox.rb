# frozen_string_literal: true

require "json"
require_relative "../../version"

module Culet
  module Profile
    # The profile for https://profiler.firefox.com, in its processed format: a thread for each view, whose samples weigh
    # their bytes.
    class Firefox
      FORMAT_VERSION = 28
      PROCESSED_VERSION = 47
      CATEGORIES = [%w[Application yellow], %w[Gems green], %w[Ruby blue], %w[Native grey]].freeze
      private_constant :FORMAT_VERSION, :PROCESSED_VERSION, :CATEGORIES

      # The tables of one thread, with the numbers of their rows.
      class Thread
        # @return [Hash] text => number
        attr_reader :strings

        def initialize
          @strings = {}
          @functions = {}
          @frames = {}
          @stacks = {}
        end

        # @param text [String]
        # @return [Integer]
        def string(text) = @strings[text.to_s] ||= @strings.size

        # @param frames [Array<Array>] outermost first: name, file, line, category
        # @return [Integer, nil] number of the stack
        def stack(frames)
          frames.reduce(nil) do |prefix, frame|
            @stacks[[prefix, frame(*frame)]] ||= @stacks.size
          end
        end

        # @return [Hash] columns of the tables
        def tables
          { "stackTable" => stack_table, "frameTable" => frame_table, "funcTable" => function_table,
            "resourceTable" => { "length" => 0, "lib" => [], "name" => [], "host" => [], "type" => [] },
            "nativeSymbols" => { "length" => 0, "libIndex" => [], "address" => [], "name" => [], "functionSize" => [] },
            "stringArray" => @strings.keys }
        end

        private

        def frame(name, file, line, category)
          function = @functions[[string(name), file && string(file)]] ||= @functions.size
          @frames[[function, line, category]] ||= @frames.size
        end

        def column(count, value) = Array.new(count, value)

        def stack_table
          rows = @stacks.keys
          categories = @frames.keys.map(&:last)
          { "length" => rows.size, "prefix" => rows.map(&:first), "frame" => rows.map(&:last),
            "category" => rows.map { |_, frame| categories[frame] }, "subcategory" => column(rows.size, 0) }
        end

        def frame_table
          rows = @frames.keys
          count = rows.size
          { "length" => count, "address" => column(count, -1), "inlineDepth" => column(count, 0),
            "category" => rows.map(&:last), "subcategory" => column(count, 0), "func" => rows.map(&:first),
            "nativeSymbol" => column(count, nil), "innerWindowID" => column(count, nil),
            "implementation" => column(count, nil), "line" => rows.map { |row| row[1] },
            "column" => column(count, nil) }
        end

        def function_table
          rows = @functions.keys
          count = rows.size
          { "length" => count, "name" => rows.map(&:first), "isJS" => column(count, false),
            "relevantForJS" => column(count, false), "resource" => column(count, -1), "fileName" => rows.map(&:last),
            "lineNumber" => column(count, nil), "columnNumber" => column(count, nil) }
        end
      end
      private_constant :Thread

      # @param data [Data]
      # @param view [Symbol, String] the thread that comes first
      def initialize(data, view: :live)
        @data = data
        @view = view.to_s
      end

      # @return [String] a JSON document
      def to_s
        views = [@view, *(VIEWS - [@view])].reject { |view| @data.sites(view).empty? && view != @view }
        JSON.generate("meta" => meta, "libs" => [], "pages" => [], "counters" => [], "profilerOverhead" => [],
                      "threads" => views.each_with_index.map { |view, at| thread(view, at) })
      end

      private

      def started = @started ||= @data.recordings.map(&:started_at).min

      def meta
        { "version" => FORMAT_VERSION, "preprocessedProfileVersion" => PROCESSED_VERSION, "interval" => 1,
          "startTime" => (started.to_r * 1000).to_f, "processType" => 0, "stackwalk" => 1, "debug" => false,
          "gcpoison" => false, "asyncstack" => false, "presymbolicated" => true, "symbolicated" => true,
          "product" => "Ruby", "platform" => "Linux", "oscpu" => RbConfig::CONFIG["arch"],
          "importedFrom" => "culet #{VERSION}", "markerSchema" => [],
          "sampleUnits" => { "time" => "ms", "eventDelay" => "ms", "threadCPUDelta" => "ns" },
          "categories" => CATEGORIES.map do |name, color|
            { "name" => name, "color" => color, "subcategories" => ["Other"] }
          end }
      end

      def thread(view, at)
        tables = Thread.new
        sites = @data.sites(view).reject { |site| site.bytes.round.zero? }
        stacks = sites.map { |site| tables.stack(frames(site)) }
        { "name" => view, "processType" => "default", "processName" => @data.recordings.first.name,
          "isMainThread" => at.zero?, "processStartupTime" => 0, "processShutdownTime" => nil, "registerTime" => 0,
          "unregisterTime" => nil, "pausedRanges" => [], "pid" => @data.recordings.first.pid.to_s, "tid" => at + 1,
          "samples" => samples(sites, stacks), "markers" => markers, **tables.tables }
      end

      def samples(sites, stacks)
        { "length" => sites.size, "stack" => stacks, "time" => Array.new(sites.size) { |at| at },
          "weight" => sites.map { |site| site.bytes.round }, "weightType" => "bytes" }
      end

      def markers
        { "length" => 0, "category" => [], "data" => [], "endTime" => [], "name" => [], "phase" => [],
"startTime" => [] }
      end

      def frames(site)
        list = site.frames.reverse.map do |frame|
          [frame.method.to_s, frame.file || frame.library, frame.line, category(frame)]
        end
        site.class_name ? [*list, [site.class_name, nil, nil, 2]] : list
      end

      def category(frame)
        return 3 if frame.library
        return 2 unless frame.file

        frame.gem.nil? ? 0 : 1
      end
    end
  end
end
