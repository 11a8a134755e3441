# frozen_string_literal: true

require_relative "command"
require_relative "pictures"
require_relative "process_arguments"

module Culet
  module CLI
    # `culet map`: the picture of a process's memory, page by page.
    class Map < Command
      include ProcessArguments
      include Pictures

      BANNER = "culet map PID|NAME | SNAPSHOT ... [--html FILE] [--png FILE]"
      EXAMPLES = ["culet map 4242                                write culet-map-4242.html",
                  "culet map 4242 --png heap.png                 a picture with legend and totals",
                  "culet map puma --html a.html --png a.png      a process by name",
                  "culet map series.snapshot --html all.html     a page that plays the series",
                  "culet map a.snapshot 4242 --html both.html    a page that shows the changes",
                  "culet map 4242 --json                         the totals alone"].freeze

      private

      def execute(words, *)
        if words.empty?
          raise UsageError, "no process given; write `culet map PID`, `culet map puma` or `culet map FILE.snapshot`"
        end
        raise UsageError, "--out needs --json; --html FILE writes the page" if options[:out] && !options[:json]

        check_destinations(:html, :png)
        show(words.map { |word| one_named(word) })
        EXIT_OK
      end

      def define(parser)
        paragraph(parser, "Each cell is one page of memory: in use, free but resident, or returned to the " \
                          "kernel. At the highest zoom the page shows single blocks.")
        define_names(parser)
        option(parser, "--html FILE", "write an HTML page to zoom and pan in (default: culet-map-PID.html)")
        option(parser, "--png FILE", "write one picture of all memory")
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
