# frozen_string_literal: true

require_relative "../../text/view"

module Culet
  module Profile
    # A profile for a terminal: the top sites with the path that leads to each, or sums by line, gem and so on.
    class Table < Text::View
      TITLES = { "live" => "in use", "allocated" => "allocated since the start", "peak" => "in use at the peak",
                 "growth" => "allocated after the boot and still in use after three major collections" }.freeze
      TOP = 20
      # Frames of a path.
      PATH = 6
      # Processes that the heading names, and those that a note names.
      NAMED = 4
      MOST_NAMED = 12
      private_constant :TITLES, :TOP, :PATH, :NAMED, :MOST_NAMED

      # @param view [Symbol, String] one of VIEWS
      # @param by [Symbol, String, nil] one of KINDS
      # @param top [Integer, nil] number of sites or rows
      # @param growth [Growth, nil] for the view growth
      # @param kept [KeptSites, nil] what keeps the sites of that view
      # @param options [Hash] as for Text::View
      def initialize(data, view: :live, by: nil, top: nil, growth: nil, kept: nil, **options)
        super(**options)
        @data = data
        @kept = kept
        @view = view.to_s
        @by = by&.to_s
        @growth = growth || (Growth.new(data) if @view == "growth")
        @top = top || TOP
      end

      private

      def sections
        return [heading, nothing, verdict, *resident].compact if total.samples.zero?

        [heading, verdict, @by ? rows : sites, rest, own, *resident, note_lines(notes)].compact
      end

      # Whether the processes grow, in words.
      def verdict
        return unless @growth && !@data.difference?

        wrap(case @growth.verdict
             when :growth then growing
             when :none then none
             else UNKNOWN.fetch(@growth.reason)
             end)
      end

      def growing
        places = @data.growing
        "#{count(places.size, "line")} of the program #{places.size == 1 ? "grows" : "grow"} all the time: " \
          "#{places.size == 1 ? "its" : "their"} survivors were allocated in all parts of #{span}. What was " \
          "allocated in a part of the time only comes after them, unless it has too few samples to tell."
      end

      def none
        "No growth shown: no line of the program has survivors from all parts of #{span}. A leak of " \
          "#{size(@growth.detectable_bytes)} or more in that time would be seen in 95 of 100 cases; a longer " \
          "profile, or a smaller distance (--sample), shows smaller ones."
      end

      UNKNOWN = {
        young: "Whether it grows is not known: there were fewer than three major collections since the base. " \
               "--collect runs them.",
        spread: "Whether it grows is not known: no line alone has survivors from all parts of the time, but all " \
                "together have. A longer profile, or a smaller distance (--sample), tells the lines apart.",
        unsampled: "No growth shown of what malloc and Ruby allocate, but memory grows that is not sampled: see below."
      }.freeze
      private_constant :UNKNOWN

      def span = "#{Text::Numbers.decimal(@growth.span_seconds, @growth.span_seconds < 10 ? 1 : 0)} s"

      # Growth that the profile does not cover.
      def resident
        grown = @growth&.rss_growth_bytes
        return [] unless grown && @growth.explained_bytes

        heading = bold("Resident memory since then: #{signed(grown)}")
        parts = [["allocated and in use, by these sites", @growth.explained_bytes], *unexplained]
        return [heading] if parts.size < 2

        [heading, grid([["", parts.map(&:first), true], ["bytes", parts.map { |_, bytes| signed(bytes) }, false]])]
      end

      def unexplained
        left = @growth.unexplained_bytes
        return [["everything else: free memory, stacks, libraries, what is not sampled", left]] unless @growth.levels

        [["in use, in no site", left], *@growth.other_levels.map { |name, bytes| [Levels::TITLES.fetch(name), bytes] }]
      end

      def total = @total ||= @data.total(@view)

      # The value of a difference, with its sign.
      def change(bytes) = @data.difference? ? signed(bytes) : size(bytes)

      def range(row) = "#{change(row.low_bytes)} to #{change(row.high_bytes)}"

      def heading
        verb = @data.difference? ? "changed by " : ""
        sure = "#{range(total)} in 95 of 100 cases; " if total.samples.positive?
        [bold("#{processes}: memory #{TITLES.fetch(@view)}: #{verb}#{change(total.bytes)}"),
         "#{sure}#{count(total.samples, "sample")}, one per #{size(@data.sample_bytes)} on average"].join("\n")
      end

      # "process 1", "processes 1, 2 and 3", or names of files.
      def processes
        names = @data.recordings.map { |one| printable(one.name) }
        return "#{names.first} and #{names.size - 1} other processes" if names.size > NAMED

        numbers = names.map { |name| name[/\Aprocess (\d+)\z/, 1] }
        return Text::Lines.list(names) if names.size < 2 || numbers.any?(&:nil?)

        "processes #{Text::Lines.list(numbers)}"
      end

      def nothing
        few = "Nothing of this kind was sampled. A smaller distance (--sample) samples more."
        return wrap(few) unless @view == "growth"

        epochs = @data.recordings.map(&:epoch).max
        there = { 0 => "were none", 1 => "was 1" }.fetch(epochs, "were #{epochs}")
        wrap("Nothing that was allocated after the boot has survived three major collections; there #{there} since " \
             "the start of the profile. `culet profile PID --view growth --collect` runs three; the view `live` " \
             "needs none.")
      end

      # A part of a change says nothing: other changes may make up for it.
      def share(bytes) = (percent(bytes, total.bytes) unless @data.difference?)

      def blocks(row)
        count = row.blocks.round
        "#{"+" if @data.difference? && count.positive?}#{number(count)}"
      end

      # The largest first: rows of a table, or sites.
      def all
        @all ||= if @by
                   @data.by(@view, row_kind).reject(&:own?)
                 else
                   places
                 end
      end

      # The program's line is of more use than that of a library that allocates for it; the other one is beside it.
      def by_line? = @by == "line"

      def row_kind = by_line? ? :place : @by.to_sym

      def shown = all.first(@top)

      # Sites that look the same here are one: their stacks differ in frames that are left out.
      def places
        sites = @data.sites(@view).reject(&:own?)
        groups = sites.group_by do |site|
          grows = grows?(site)
          [path(site), site.class_name, site.labels, @data.rank(site), grows]
        end
        @places = groups
        groups.map { |key, list| Row.new(key, list.map(&:estimate).reduce(:+)) }
              .sort_by { |row| [row.name[3], -row.bytes.abs] }
      end

      def grows?(site) = !@growth.nil? && @data.growing.include?(site.place)

      def rank(row) = @by ? row.rank : row.name[3]

      def rows
        grid([[@by, shown.map { |row| printable(row.name) }, true],
              *([["grows", shown.map { |row| row.grows? ? "yes" : "" }, true]] if @growth),
              ["bytes", shown.map { |row| change(row.bytes) }, false],
              *([["share", shown.map { |row| share(row.bytes) }, false]] unless @data.difference?),
              ["95 % interval", shown.map { |row| range(row) }, false],
              ["blocks", shown.map { |row| blocks(row) }, false],
              *([["kept by", shown.map { |row| printable(holders[row.name]&.name) }, true]] if holders.any?),
              *([["in", shown.map { |row| printable(inside(row)) }, true]] if shown.any? { |row| inside(row) })])
      end

      # @return [Hash{String => KeptSites::Holding}] of the rows that grow
      def holders
        @holders ||= (@kept ? shown.select(&:grows?) : []).to_h do |row|
          [row.name, @kept.holding(@data.sites_of(row, @view, row_kind))]
        end.compact
      end

      # The library's line that allocates most for a line of the program.
      def inside(row) = (row.beside if by_line? && row.beside != row.name)

      def sites = shown.each_with_index.map { |row, at| site(row, at + 1) }

      def site(row, rank)
        path, class_name, labels, _, grows = row.name
        what = class_name ? "#{printable(class_name)} object" : "block"
        labels = labels.map { |name, value| ", #{printable(name)}=#{printable(value)}" }.join
        share = [share(row.bytes), range(row)].compact.join("; ")
        ["#{rank}. #{"grows: " if grows}#{bold(change(row.bytes))} (#{share}), " \
         "#{blocks(row)} #{what}#{"s" unless row.blocks.round.abs == 1}#{labels}", *path, *keeper(row)].join("\n")
      end

      def keeper(row)
        found = @kept&.holding(@places.fetch(row.name)) if row.name.last
        found ? [Text::Lines.fold("   #{printable(found.to_s)}", indent: 5)] : []
      end

      def rest
        left = all.drop(@top)
        return if left.empty?

        bytes = left.sum(&:bytes)
        part = share(bytes)
        "#{count(left.size, "more #{@by ? "row" : "site"}")}: #{change(bytes)}#{" (#{part})" if part}"
      end

      # Apart, since it leaves with culet, and is nothing that the program can change.
      def own
        found = @data.sites(@view).select(&:own?)
        return if found.empty?

        bytes = found.sum(&:bytes)
        part = share(bytes)
        "culet itself: #{change(bytes)}#{" (#{part})" if part}"
      end

      # The native function that allocates, and the Ruby frames that lead to it: the innermost one, those of the
      # application, and the outermost.
      def path(site)
        native = site.frames.take_while(&:library).find { |frame| !frame.nameless? }
        ruby = site.frames.select(&:interpreted?)
        return named(site.frames).first(PATH).map { |frame| "   #{line(frame)}" } if ruby.empty?

        chosen = [native, *relevant(ruby)].compact
        remark = site.frames.find(&:remark)
        # A block and its method may be on one line.
        [*chosen.map { |frame| "   #{line(frame)}" }.uniq, *("   #{remark.method}" if remark)]
      end

      # One unknown function of a library in a row is enough.
      def named(frames)
        frames.slice_when { |one, other| one.library != other.library || ![one, other].all?(&:nameless?) }.map(&:first)
      end

      def relevant(ruby)
        return ruby if ruby.size <= PATH

        own = ruby.select { |frame| frame.file && frame.gem.nil? }
        keep = [*ruby.first(2), *own.first(PATH - 3), ruby.last].uniq(&:object_id)
        ruby.select { |frame| keep.any? { |one| one.equal?(frame) } }
      end

      # The path of a gem's file within the gem.
      def line(frame)
        folder = frame.file && frame.gem && "/#{frame.gem.tr(" ", "-")}/"
        return printable(frame.to_s) unless folder && frame.file.include?(folder)

        inside = frame.file.rpartition(folder).last.delete_suffix(">") # of <internal:...>
        printable("#{frame.method} (#{frame.gem}: #{inside}:#{frame.line})")
      end

      def notes
        [*(@data.difference? ? [unrelated, restarted, unchanged] : [alike, *once, large]), lost, without_ruby,
         native_alone, others, *ended].compact
      end

      # Adds up processes; shared samples count once.
      def once
        shared = @data.shared(@view) or return []

        common = "#{size(shared.common.bytes)} was allocated before a fork, and several of these processes have it: " \
                 "it counts once."
        inherited = "#{size(shared.inherited.bytes)} was inherited by a fork from a process that is not named here; " \
                    "it counts in full, also where its pages are shared."
        [(common if shared.common.samples.positive?), (inherited if shared.inherited.samples.positive?)]
      end

      # Ruby's stacks of threads are such blocks.
      def large
        return unless %w[live growth].include?(@view)

        found = @data.recordings.select(&:large_bytes)
        absent = found.sum { |one| [one.large_bytes - one.large_resident_bytes, 0].max }
        return if absent < total.bytes / 20

        "#{size(absent)} of blocks of 131 kB and more was never written, or is not resident for another reason. It " \
          "does not count."
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

      def unrelated
        return unless @data.unrelated?(@view)

        "The two profiles have no source file of an application in common. They may be of different programs, or of " \
          "one in different directories: nothing in them matches."
      end

      # Neighbours whose intervals overlap: their order is chance.
      def alike
        found = groups.select { |group| group.size > 1 }.map { |group| "#{group.first + 1} to #{group.last + 1}" }
        return if found.empty?

        "#{@by ? "Rows" : "Sites"} #{Text::Lines.list(found)} cannot be told apart: their intervals overlap. A " \
          "longer profile, or a smaller distance (--sample), narrows the intervals."
      end

      def restarted
        return unless @data.restarted?

        "The profile was started again between the two, so the later one has nothing that was allocated before. To " \
          "compare two moments, start the program with CULET_PROFILE=1."
      end

      # @return [Array<Array<Integer>>] numbers of rows; those of a group overlap with its first one
      def groups
        shown.each_with_index.with_object([]) do |(row, at), groups|
          first = shown[groups.last.first] if groups.any?
          overlaps = first && rank(first) == rank(row) && row.high_bytes > first.low_bytes
          overlaps ? groups.last << at : groups << [at]
        end
      end

      def unchanged
        uncertain = shown.count { |row| row.low_bytes.negative? && row.high_bytes.positive? }
        return if uncertain.zero?

        "#{uncertain} of these #{shown.size} changes may be chance: their intervals contain 0. A longer profile, or " \
          "a smaller distance (--sample), narrows the intervals."
      end

      def lost
        return unless @data.lost.positive?

        "#{count(@data.lost, "sample")} found no room and are not included."
      end

      def without_ruby
        marked = @data.sites(@view).select { |site| !site.own? && site.frames.any?(&:remark) }.sum(&:bytes)
        return if @data.difference? || total.bytes.zero? || marked / total.bytes <= 0.05

        "#{share(marked)} was allocated where Ruby's stack cannot be read, or says nothing: in a " \
          "collection, in its deferred work, in threads without the GVL, or while Ruby starts."
      end

      # The start of Ruby itself has C frames alone, too: a third of a small program.
      def native_alone
        bytes = @data.sites(@view).select(&:native_in_ruby?).sum(&:bytes)
        return if @data.difference? || total.bytes.zero? || bytes / total.bytes <= 0.5

        "#{share(bytes)} has C frames alone, as what was allocated before culet/profile was loaded. To see its " \
          "lines, start the program with RUBYOPT=-r$(culet lib profile)."
      end
    end
  end
end
