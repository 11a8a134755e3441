# frozen_string_literal: true

require "time"
require_relative "../../system/kernel_file"
require_relative "../../system/memory_group"
require_relative "../../text/view"

module Culet
  module Autopsy
    # What the kernel says of kills for lack of memory: its log, and the counts of this process's control group.
    class KernelReport < Text::View
      # Kills that are printed.
      TOP = 20
      # Counts of memory.events (version 2) and memory.oom_control (version 1), in order of weight.
      COUNTS = { "oom_kill" => "processes killed", "oom" => "times at the limit without memory to reclaim",
                 "max" => "times at the limit", "high" => "times above memory.high", "low" => "times below memory.low",
                 "under_oom" => "out of memory now" }.freeze
      private_constant :TOP, :COUNTS

      # @param log [KernelLog]
      # @param options [Hash] as for Text::View
      def initialize(log, **options)
        super(**options)
        @log = log
        @files = MemoryGroup.files
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        { "kills" => @log.kills.map { |kill| document(kill) }, "problem" => @log.problem,
          "group" => { "file" => @files[3], "counts" => counts, "used_bytes" => number(@files[0]),
                       "limit_bytes" => limit } }
      end

      private

      def sections = [bold("Kills for lack of memory"), kills, group]

      def document(kill)
        { "at" => kill.at.utc.iso8601(3), "pid" => kill.pid, "name" => kill.name, "group" => kill.group,
          "process_group" => kill.task_group, "rss_bytes" => kill.resident_bytes }
      end

      def kills
        if @log.problem
          return wrap("The kernel's log cannot be read (#{@log.problem}): root may, or any user where " \
                      "kernel.dmesg_restrict is 0.")
        end
        return wrap("The kernel's log has none.") if @log.kills.empty?

        list = @log.kills.last(TOP).reverse
        grid([["at (UTC)", list.map { |one| one.at.utc.strftime("%F %T") }, true],
              ["process", list.map { |one| "#{one.pid} (#{printable(one.name)})" }, true],
              ["held", list.map { |one| one.resident_bytes ? Text::Size.human(one.resident_bytes) : "-" }, false],
              ["limit of", list.map { |one| one.group ? printable(one.group) : "the machine" }, true]])
      end

      def group
        return wrap("This process is in no control group that counts memory.") unless @files.first
        return wrap("#{@files[3]} cannot be read.") if counts.empty?

        used = number(@files[0])
        figures = " #{Text::Size.limit(used, limit)} used of #{limit ? Text::Size.limit(limit) : "no limit"}." if used
        [wrap("Of this process's control group (#{@files[3]}):#{figures}"),
         grid([["count", counts.keys.map { |name| COUNTS.fetch(name) }, true],
               ["since it was made", counts.values.map { |count| Text::Numbers.grouped(count) }, false]])].join("\n")
      end

      def counts
        @counts ||= KernelFile.content(@files[3].to_s).to_s.scan(/^(\w+) (\d{1,18})$/).to_h.slice(*COUNTS.keys)
                              .transform_values(&:to_i)
      end

      def number(path) = KernelFile.content(path.to_s)&.slice(/\A\d{1,20}\z/)&.to_i

      def limit = number(@files[1])&.then { |bytes| bytes if bytes < 1 << 60 }
    end
  end
end
