# frozen_string_literal: true

require "time"
require_relative "../../system/kernel_file"
require_relative "../../system/memory_group"
require_relative "../../text/view"

module Culet
  module Autopsy
    # Kills by the kernel for lack of memory: from its log, and the counts of this process's control group.
    class KernelReport < Text::View
      # Kills that are printed.
      TOP = 20
      # Counts of memory.events (version 2) and memory.oom_control (version 1), in order of weight.
      COUNTS = { "oom_kill" => "processes killed", "oom" => "times at the limit without memory to reclaim",
                 "max" => "times at the limit", "high" => "times above memory.high", "low" => "times below memory.low",
                 "under_oom" => "out of memory now" }.freeze
      private_constant :TOP, :COUNTS

      # @param log [KernelLog]
      # @param root [String] the folder that has /proc and the mounted control groups
      # @param options [Hash] as for Text::View
      def initialize(log, root: "/", **options)
        super(**options)
        @log = log
        @own, = MemoryGroup.own(root: root)
        @group = MemoryGroup.tightest(root: root).first || @own
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        { "kills" => @log.kills.map { |kill| document(kill) }, "problem" => @log.problem,
          "group" => { "file" => @own&.kills_file, "counts" => counts, "used_bytes" => @group&.used_bytes,
                       "limit_bytes" => @group&.limit_bytes } }
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
              ["held", list.map { |one| one.resident_bytes ? size(one.resident_bytes) : "-" }, false],
              ["limit of", list.map { |one| one.group ? printable(one.group) : "the machine" }, true]])
      end

      def group
        return wrap("This process is in no control group that counts memory.") unless @own
        return wrap("#{@own.kills_file} cannot be read.") if counts.empty?

        used = @group.used_bytes
        limit = @group.limit_bytes
        figures = " #{Text::Size.limit(used, limit)} used of #{limit ? Text::Size.limit(limit) : "no limit"}." if used
        [wrap("Of this process's control group (#{@own.kills_file}):#{figures}"),
         grid([["count", counts.keys.map { |name| COUNTS.fetch(name) }, true],
               ["since it was made", counts.values.map { |count| number(count) }, false]])].join("\n")
      end

      def counts
        text = @own && KernelFile.content(@own.kills_file)
        text.to_s.scan(/^(\w+) (\d{1,18})$/).to_h.slice(*COUNTS.keys).transform_values(&:to_i)
      end
    end
  end
end
