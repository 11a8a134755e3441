# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "pictures"
require_relative "subjects"

module Culet
  module CLI
    # `culet map`: the picture of a process's memory, page by page.
    class Map < Command
      include Subjects
      include Pictures

      def banner = "culet map PID|NAME | SNAPSHOT ... [--html FILE] [--png FILE]"

      def examples
        ["culet map 4242                                   writes culet-map-4242.html, to be opened in any browser",
         "culet map 4242 --png heap.png                    a picture of the whole, with legend and totals",
         "culet map puma --html a.html --png a.png          the server of that name",
         "culet map series.snapshot --html series.html     a series of snapshots: the page plays it",
         "culet map before.snapshot 4242 --html both.html  then and now: the page shows what changed",
         "culet map 4242 --json                            only the figures"]
      end

      def execute(words, command)
        raise UsageError, "`culet map` takes no command; give it a process number, e.g. `culet map 4242`" if command
        if words.empty?
          raise UsageError, "which process? Write `culet map PID`, or a name, e.g. `culet map puma`, or name a snapshot"
        end

        show(words.map { |word| one_named(word) })
        EXIT_OK
      end

      private

      def define(parser)
        parser.separator("One cell is one page of memory: in use, free but resident, returned; at the closest, single blocks.")
        parser.separator("")
        parser.on("--html FILE", "write a page to zoom and move in (default: culet-map-PID.html)") { |v| options[:html] = v }
        parser.on("--png FILE", "write a picture of the whole") { |v| options[:png] = v }
        define_treatment(parser)
      end

      def show(words)
        pictures = options.key?(:html) || options.key?(:png)
        html = options.fetch(:html) { default_name(words.first) unless pictures || options[:json] }
        found = words.flat_map { |word| snapshots(word, chunks: html ? nil : 0) }
        drawing(words) do
          write_png(found, options[:png]) if options[:png]
          write_html(found, html) if html
          deliver(JSON.generate(document(found))) if options[:json]
        end
      end

      def default_name(word) = "culet-map-#{Culet::Scope.process?(word) ? word : File.basename(word, ".*")}.html"

      def document(snapshots)
        documents = snapshots.map { |snapshot| Culet::Map::Totals.new(snapshot).to_h }
        documents.size == 1 ? documents.first : { "snapshots" => documents }
      end
    end
  end
end
