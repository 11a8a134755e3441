# frozen_string_literal: true

require_relative "../../system/kernel_file"
require_relative "../../model/gain"
require_relative "../../model/snapshot_verdicts"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../model/sharing/process_tree"
require_relative "labels"

module Culet
  module Cow
    # Conclusions from the figures of a process tree, in sentences.
    class Verdicts
      # @param tree [ProcessTree]
      def initialize(tree)
        @tree = tree
        @workers = tree.workers.select(&:forked)
        @remedies = Remedies.new(tree.read_members.map { |one| Setup.of(one.snapshot) }, forks: @workers.any?)
      end

      # @return [Array<Verdict>] the real cost, the sharing that was lost, and remedies
      def list
        return [] if @tree.read_members.empty?

        [*figures, *(@workers.empty? ? alone : sharing), *each_alone]
      end

      private

      def figures
        return [] if @tree.members.size < 2

        sum = @tree.total_rss_bytes
        pays = @tree.total_pss_bytes
        [verdict("cost", "all processes together take #{bytes(pays)} (PSS); the sum of their RSS is #{bytes(sum)}, " \
                         "#{format("%.1f", sum.fdiv([pays, 1].max))} times as much, " \
                         "because RSS counts shared pages in every process. " \
                         "A worker killer should use private bytes or PSS, not RSS")]
      end

      def alone
        text = if @tree.members.size == 1
                 "the process has no children, so nothing is shared"
               else
                 "no child shares memory with its parent: each runs another program"
               end
        [verdict("sharing", text)]
      end

      def sharing
        shares = mean
        lost = Gain.new(shares.unshared, of: shares.inherited)
        [kept(shares, lost), *([malloc, ruby, written, garbage].compact if lost.worth?)]
      end

      # The average worker.
      def mean(*levels)
        all = @workers.map do |worker|
          shares = worker.breakdown.levels
          (levels.empty? ? shares.values : shares.values_at(*levels).compact).reduce(SharingBytes.none, :+)
        end
        SharingBytes.new(*all.map(&:to_a).transpose.map { |values| values.sum / @workers.size })
      end

      # The advice of `culet report` for the process with the most to gain.
      def each_alone
        changes = @tree.read_members.to_h do |member|
          [member, SnapshotVerdicts.new(SnapshotLevels.new(member.snapshot)).changes]
        end
        found = changes.reject { |_, list| list.empty? }
        member, list = found.max_by { |one, _| one.snapshot.malloc&.trim_bytes.to_i }
        return [] unless member

        more = found.size > 1 ? ", one of #{found.size} such processes" : ""
        list.map { |one| verdict(one.topic, "process #{member.pid}#{more}: #{one.text}", one.remedy) }
      end

      def kept(shares, lost)
        average = @workers.size > 1 ? "the average of #{@workers.size} workers" : "the worker"
        verdict("sharing", "#{average} inherited #{bytes(shares.inherited)}, has unshared #{bytes(shares.unshared)} " \
                           "(#{percent(shares.unshared, shares.inherited)}) of it and added " \
                           "#{bytes(shares.fresh)}#{lost.remark}")
      end

      # Whose writes they were is what the comparison of pages says, with its own remedies.
      def malloc
        lost = mean("malloc_used", "malloc_free", "malloc_metadata", "malloc_unsplit").unshared
        return unless worth?(lost, mean.inherited)

        verdict("malloc", "#{bytes(lost)} of the unshared bytes belong to malloc: workers wrote to blocks, " \
                          "or allocated in the free space between old ones",
                [warm_up("it leaves less free space"),
                 advise("requests", "the parent builds what every worker would build at its first requests")]
                  .compact.join("; "))
      end

      def ruby
        lost = mean("ruby_objects", "ruby_free_slots", "ruby_unsplit").unshared
        return unless worth?(lost, mean.inherited)

        verdict("Ruby heap", "#{bytes(lost)} of the unshared bytes are Ruby heap pages: " \
                             "objects created in free slots, " \
                             "and flags that the collector or the program changed in existing objects",
                warm_up("it promotes survivors and compacts"))
      end

      # Only pages with a single cause count: without it they would still be shared.
      def written
        members = @workers.select(&:writes)
        all = members.map(&:writes).reduce(:+) or return
        titled = Labels::WRITES.to_h { |one, title| [one, [title, all.only(one) / members.size]] }
        alone = titled.select { |_, (_, count)| worth?(count, all.bytes / members.size) }
        return if alone.empty?

        causes = alone.sort_by { |_, (_, count)| -count }.map do |one, (title, count)|
          "#{title} #{bytes(count)}#{flags(all, members.size) if one == :flag_bits}"
        end
        verdict("writes", "#{bytes(all.bytes / members.size)} of pages were compared for each worker; " \
                          "those with only one cause: #{causes.join("; ")}",
                remedy(alone.keys.sort_by { |one| -all.only(one) }))
      end

      def flags(writes, workers)
        told = writes.flags.sort_by { |_, count| -count }.map do |name, count|
          "#{name.tr("_", " ")} of #{Text::Numbers.count(count / workers, "object")}"
        end
        " (#{told.join(", ")})" if told.any?
      end

      # @param found [Array<Symbol>] categories of writes, the largest first
      # @return [String, nil] what to do before the fork
      def remedy(found)
        hows = found.filter_map { |one| WARM_UPS[one] }
        list = [*(warm_up(hows.join(", and ")) if hows.any?), *found.filter_map { |one| other_remedy(one) }].uniq
        list.join("; ") unless list.empty?
      end

      # How a warm-up helps against writes of a category.
      WARM_UPS = {
        flag_bits: "it promotes surviving objects",
        collector: "each collection rewrites the lists of free slots, and it leaves fewer",
        reuse: "it leaves less free space",
        same: "it leaves less for collections in workers, which set marks and set them back"
      }.freeze
      # What else does: a remedy, and how it helps; or code to change.
      OTHERS = { inline_caches: ["requests", "they fill the inline caches once for all workers"],
                 metadata: ["allocator", "it does not write into freed blocks"] }.freeze
      FREEZE = "freeze in the parent what workers would freeze"
      HUGE_PAGES = "transparent huge pages are always on, and the kernel copies pages to make huge ones: " \
                   "culet doctor says how to limit them"
      CLASSES = "culet cow --classes names the objects on these pages"
      private_constant :WARM_UPS, :OTHERS, :FREEZE, :HUGE_PAGES, :CLASSES

      def other_remedy(category)
        case category
        when :flag_bits then FREEZE
        when :same then KernelFile.huge_pages == "always" ? HUGE_PAGES : CLASSES
        else OTHERS[category]&.then { |name, how| advise(name, how) }
        end
      end

      # @param how [String] how it helps
      # @return [String, nil] nil where the parent has called it: what is lost now is lost in spite of it
      def warm_up(how) = advise("warmup", how)

      def advise(name, how) = @remedies[name]&.then { |remedy| "#{remedy}: #{how}" }

      # Free memory of the parent was free at the fork already, if the parent has been idle since.
      def garbage
        parents = @tree.read_members.select { |member| @workers.any? { |worker| worker.parent_pid == member.pid } }
        free = parents.sum do |parent|
          parent.breakdown.levels.values_at("malloc_free", "ruby_free_slots").compact.sum(&:resident)
        end
        all = parents.sum(&:rss_bytes)
        return unless worth?(free, all)

        verdict("free memory", "#{bytes(free)} (#{percent(free, all)}) of the parent are free: " \
                               "each worker allocates there and unshares the pages",
                warm_up("it collects garbage and returns free memory"))
      end

      def worth?(count, whole) = Gain.new(count, of: whole).worth?

      def bytes(count) = Text::Size.human(count)

      def percent(count, whole) = Text::Numbers.percent(count, whole, digits: 0)

      def verdict(topic, text, remedy = nil) = Verdict.new(topic: topic, text: text, remedy: remedy)
    end
  end
end
