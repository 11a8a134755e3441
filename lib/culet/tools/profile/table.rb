# frozen_string_literal: true

require_relative "../../text/view"

module Culet
  module Profile
    # A profile for a terminal: the top sites with the path that leads to each, or sums by line, gem and so on.
    class Table < Text::View
      TITLES = { "live" => "in use", "allocated" => "allocated since the start", "peak" => "in use at the peak",
                 "growth" => "allocated since the start and still in use after three major collections" }.freeze
      HEADINGS = { "line" => "line", "method" => "method", "file" => "file", "gem" => "gem", "class" => "class",
                   "library" => "library", "label" => "label" }.freeze
      TOP = 20
      # Frames of a path.
      PATH = 6
      # Processes that the heading names, and those that a note names.
      NAMED = 3
      MOST_NAMED = 12
      MARKS = /\A\(/
      private_constant :TITLES, :HEADINGS, :TOP, :PATH, :NAMED, :MOST_NAMED, :MARKS

      # @param data [Data]
      # @param view [Symbol, String] one of VIEWS
      # @param by [Symbol, String, nil] one of KINDS
      # @param top [Integer, nil] number of sites or rows
      # @param options [Hash] as for Text::View
      def initialize(data, view: :live, by: nil, top: nil, **options)
        super(**options)
        @data = data
        @view = view.to_s
        @by = by&.to_s
        @top = top || TOP
      end

      private

      def sections
        [heading, *(if total.samples.zero?
                      nothing
                    else
                      [@by ? rows : sites, note_lines(notes)]
                    end)]
      end

      def total = @total ||= @data.total(@view)

      def size(bytes) = bytes.negative? ? "-#{Text::Size.human(-bytes.round)}" : Text::Size.human(bytes.round)

      def range(row) = "#{size(row.low_bytes)} to #{size(row.high_bytes)}"

      def heading
        names = @data.recordings.map { |one| printable(one.name) }
        who = names.size > NAMED ? "#{names.first} and #{names.size - 1} other processes" : Text::Lines.list(names)
        change = @data.difference? ? "change of memory " : "memory "
        [bold("#{who}: #{change}#{TITLES.fetch(@view)}: #{size(total.bytes)}"),
         "#{range(total)} in 95 of 100 cases; #{count(total.samples, "sample")}, one per " \
         "#{Text::Size.human(@data.sample_bytes)} on average"].join("\n")
      end

      def nothing
        few = "Nothing of this kind was sampled. A smaller distance (--sample) samples more."
        return [wrap(few)] unless @view == "growth"

        epochs = @data.recordings.map(&:epoch).max
        [wrap("Nothing that was allocated since the start of the profile has survived three major collections; there " \
              "were #{epochs}. Profile longer, or look at the view `live`.")]
      end

      def percent(share) = "#{Text::Numbers.decimal(100 * share, 1)} %"

      def rows
        list = @data.by(@view, @by).first(@top)
        grid([[HEADINGS.fetch(@by), list.map { |row| printable(row.name) }, true],
              ["bytes", list.map { |row| size(row.bytes) }, false],
              ["share", list.map { |row| percent(row.share) }, false],
              ["95 % interval", list.map { |row| range(row) }, false],
              ["blocks", list.map { |row| Text::Numbers.grouped(row.blocks.round) }, false]])
      end

      def sites
        @data.sites(@view).first(@top).each_with_index.map { |site, at| site(site, at + 1) }
      end

      def site(site, rank)
        what = site.class_name ? "#{printable(site.class_name)} objects" : "blocks"
        share = total.bytes.zero? ? 0 : site.bytes / total.bytes
        labels = site.labels.map { |name, value| " #{printable(name)}=#{printable(value)}" }.join
        ["#{rank}. #{bold(size(site.bytes))} (#{percent(share)}; #{range(site)}), " \
         "#{Text::Numbers.grouped(site.blocks.round)} #{what}#{labels}", *path(site)].join("\n")
      end

      # The native function that allocates, and the Ruby frames that lead to it: the innermost one, those of the
      # application, and the outermost.
      def path(site)
        native = site.frames.take_while(&:library).find { |frame| !frame.nameless? }
        ruby = site.frames.select { |frame| frame.file || (!frame.library && !frame.remark) }
        return named(site.frames).first(PATH).map { |frame| "   #{line(frame)}" } if ruby.empty?

        chosen = [native, *relevant(ruby)].compact
        remark = site.frames.find(&:remark)
        # A block and its method may be on one line.
        [*chosen.map { |frame| "   #{line(frame)}" }.uniq, *("   #{remark.method}" if remark)]
      end

      # One unknown function of a library in a row is enough.
      def named(frames)
        frames.slice_when do |one, other|
          one.library != other.library || [one, other].any? do |frame|
            !frame.nameless?
          end
        end.map(&:first)
      end

      def relevant(ruby)
        return ruby if ruby.size <= PATH

        own = ruby.select { |frame| frame.file && frame.gem.nil? }
        keep = [*ruby.first(2), *own.first(PATH - 3), ruby.last].uniq(&:object_id)
        ruby.select { |frame| keep.any? { |one| one.equal?(frame) } }
      end

      def line(frame) = printable(frame.to_s)

      def notes
        [alike, lost, without_ruby, others, *ended].compact
      end

      # Those that the heading does not name.
      def others
        names = @data.recordings.map { |one| printable(one.name) }
        return if names.size <= NAMED

        more = names.size - 1 - MOST_NAMED
        list = more.positive? ? [*names[1, MOST_NAMED], "#{more} more"] : names.drop(1)
        "The other processes: #{Text::Lines.list(list)}."
      end

      # Processes without a profile of their end.
      def ended
        found = @data.recordings.select { |one| one.state == :ended }
        more = found.size - MOST_NAMED
        sentences = found.first(MOST_NAMED).map do |one|
          ago = one.ended_at ? "#{Text::Numbers.decimal([one.ended_at - one.taken_at, 0].max, 1)} s before" : "earlier"
          "#{printable(one.name).sub(/\Ap/, "P")} has ended; it was read #{ago}."
        end
        more.positive? ? [*sentences, "So have #{more} other processes."] : sentences
      end

      # Neighbours whose intervals overlap: their order is chance.
      def alike
        return if @by || @data.difference?

        list = @data.sites(@view).first(@top)
        first = list.first
        same = list.drop(1).take_while { |site| site.high_bytes > first.low_bytes }.size
        return unless same.positive?

        "Sites 1 to #{same + 1} cannot be told apart: their intervals overlap. A longer profile, or a smaller " \
          "distance (--sample), narrows the intervals."
      end

      def lost
        return unless @data.lost.positive?

        "#{count(@data.lost, "sample")} found no room and are not included."
      end

      def without_ruby
        marked = @data.sites(@view).select { |site| site.frames.any?(&:remark) }.sum(&:bytes)
        return unless total.bytes.positive? && marked / total.bytes > 0.05

        "#{percent(marked / total.bytes)} was allocated where Ruby's stack cannot be read, or says nothing: in a " \
          "collection, in its deferred work, in threads without the GVL, or while Ruby starts."
      end
    end
  end
end
