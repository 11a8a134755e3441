# frozen_string_literal: true

require_relative "../../text/view"
require_relative "../../model/profile"
require_relative "findings"

module Culet
  module Autopsy
    # Findings for a terminal.
    class Table < Text::View
      # Lines, sites and requests that are printed.
      TOP = 10
      STEPS = 10
      # Moments of the history.
      MOMENTS = 8
      WITHOUT_PROFILE = "The memory profile was off, so the code that held the memory is not known (CULET_PROFILE=1)."
      WITHOUT_REQUESTS = "No request or job is known (Culet::Profile::Rack and the like name them)."
      private_constant :TOP, :STEPS, :MOMENTS, :WITHOUT_PROFILE, :WITHOUT_REQUESTS

      private

      def findings = @subject

      def box = findings.box

      def sections = [heading, levels, history, lines, *holders, work, steps, note_lines(notes)]

      def size(bytes) = bytes.nil? ? "-" : super

      def signed(bytes) = bytes.nil? ? "-" : super

      def clock(time) = time.utc.strftime("%T")

      def seconds(value) = Text::Numbers.decimal(value, value < 10 ? 1 : 0)

      def heading
        [wrap(bold("Process #{box.pid} (#{printable(box.program)}) #{printable(findings.cause.text)}.")),
         wrap("It started at #{box.started_at.utc.strftime("%F %T")} UTC; the last record is of " \
              "#{box.last_at.utc.strftime("%F %T.%L")}#{against_limit}.")].join("\n")
      end

      def against_limit
        limit = findings.limit_bytes
        used = findings.used_bytes
        return "" unless used
        return "; its control group, without a limit, used #{size(used)}" unless limit

        "; its control group used #{Text::Size.limit(used, limit)} of #{Text::Size.limit(limit)} " \
          "(#{percent(used, limit, digits: 0)})"
      end

      def levels
        return wrap("There are no figures: the process ended before the first were written.") unless findings.reading

        rss = findings.reading.resident_bytes
        rows = findings.reading.levels
        grid([["level", [*rows.keys.map { |name| Levels::TITLES.fetch(name) }, "resident"], true],
              ["bytes", [*rows.map { |_, bytes| size(bytes) }, size(rss)], false],
              ["share", [*rows.map { |_, bytes| percent(bytes, rss.to_i) }, "100.0 %"], false]])
      end

      # The last moments at growing distances.
      def history
        all = box.readings
        return if all.size < 2

        last = all.last.at
        ages = (0...MOMENTS).map { |step| step.zero? ? 0 : 2**(step - 1) }
        some = ages.filter_map { |age| all.reverse.find { |one| last - one.at >= age - 0.01 } }.uniq.reverse
        grid([["seconds before", some.map { |one| seconds(last - one.at) }, false],
              ["resident", some.map { |one| size(one.resident_bytes) }, false],
              ["group", some.map { |one| size(one.group_used_bytes) }, false],
              ["malloc", some.map { |one| size(one.malloc_used_bytes) }, false],
              ["Ruby pages", some.map { |one| size(one.ruby_page_bytes) }, false],
              ["collections", some.map { |one| one.collections&.then { |n| number(n) } || "-" }, false]])
      end

      def lines
        data = findings.profile
        return wrap(WITHOUT_PROFILE) unless data

        rows = findings.lines.first(TOP)
        return wrap("The memory profile has sampled nothing.") if rows.empty?

        all = findings.profiled_bytes || data.total(:live).bytes
        grid([["line", rows.map { |row| printable(row.name) }, true],
              ["in use", rows.map { |row| size(row.bytes) }, false],
              ["share", rows.map { |row| percent(row.bytes, all) }, false],
              ["95 % interval", rows.map { |row| "#{size(row.low_bytes)} to #{size(row.high_bytes)}" }, false]])
      end

      # The holders at the last look.
      def holders
        look = box.look or return []
        age = seconds(box.last_at - look.at)
        since = ", #{signed(look.growth_bytes)} in #{look.seconds} s" if look.seconds
        rows = look.holders
        [wrap("#{size(look.total_bytes)} was retained #{age} s before the last record#{since}. " \
              "#{look.seconds ? "What kept more:" : "What kept most:"}"),
         grid([["holder", rows.map { |one| printable(one.title) }, true],
               ["bytes", rows.map { |one| size(one.bytes) }, false],
               *([["growth", rows.map { |one| signed(one.growth_bytes) }, false]] if look.seconds)])]
      end

      def work
        running = findings.running.first(TOP)
        finished = findings.finished.first(TOP - [running.size, TOP / 2].min)
        list = running + finished
        return wrap(WITHOUT_REQUESTS) if list.empty?

        grid([["request or job", list.map { |one| printable(one.label) }, true],
              ["state", list.map { |one| one.ended_at ? "ended #{clock(one.ended_at)}" : "running" }, true],
              ["seconds", list.map { |one| seconds((one.ended_at || box.last_at) - one.started_at) }, false],
              ["growth", list.map { |one| signed(one.growth_bytes) }, false],
              ["objects", list.map { |one| one.objects ? number(one.objects) : "-" }, false]])
      end

      def steps
        list = box.notes.last(STEPS)
        return if list.empty?

        grid([["at", list.map { |one| clock(one.at) }, true],
              ["limit or step", list.map { |one| "#{one.kind}: #{printable(one.text)}" }, true],
              *([["bytes", list.map { |one| noted(one) }, false]] if list.any?(&:bytes))])
      end

      def noted(note) = note.bytes && note.kind == "limit" ? Text::Size.limit(note.bytes) : size(note.bytes)

      def notes = [late, others, unread_log, explained].compact

      def explained
        return unless findings.cause.kind == "kernel"

        "While such a process runs, culet explain says why it is so large, and what to do."
      end

      def late
        data = findings.profile or return
        age = box.last_at - data.recordings.first.taken_at
        "The largest sites are those of #{seconds(age)} s before the last record." if age > 1.5
      end

      def others
        return if findings.running.size <= 1

        "Growth is that of the whole process, and so of all #{findings.running.size} that were running."
      end

      def unread_log
        return if findings.log.problem.nil? || findings.cause.kind == "alive"

        "The kernel's log was not read (#{findings.log.problem}): root may, or any user where " \
          "kernel.dmesg_restrict is 0."
      end
    end
  end
end
