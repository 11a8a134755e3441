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
        @savings = Savings.new(tree.read_members.map(&:part), of: tree.total_pss_bytes.to_i)
      end

      # @return [Array<Verdict>] the real cost, the sharing that was lost, and remedies
      def list
        return [] if @tree.read_members.empty?

        [*figures, *(@workers.empty? ? alone : sharing), *changes]
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

      # The remedies of `culet explain` that a single reading supports.
      def changes
        @savings.worth(@remedies.list(*Remedies::NAMES)).sort_by { |one| -one.saves_bytes }.map do |one|
          verdict(one.name, "#{one.text}: saves #{@savings.gain(one)}#{@savings.gain(one).remark}", one.to_s)
        end
      end

      def kept(shares, lost)
        average = @workers.size > 1 ? "the average of #{@workers.size} workers" : "the worker"
        verdict("sharing", "#{average} inherited #{bytes(shares.inherited)}, has unshared #{bytes(shares.unshared)} " \
                           "(#{percent(shares.unshared, shares.inherited)}) of it and added " \
                           "#{bytes(shares.fresh)}#{lost.remark}")
      end

      # The comparison of pages shows the origin of these writes.
      def malloc
        lost = mean("malloc_used", "malloc_free", "malloc_metadata", "malloc_unsplit").unshared
        return unless worth?(lost, mean.inherited)

        verdict("malloc", "#{bytes(lost)} of the unshared bytes belong to malloc: workers wrote to blocks, " \
                          "or allocated in the free space between old ones",
                requests("the parent builds what every worker would build at its first requests"))
      end

      def ruby
        lost = mean("ruby_objects", "ruby_free_slots", "ruby_unsplit").unshared
        return unless worth?(lost, mean.inherited)

        verdict("Ruby heap", "#{bytes(lost)} of the unshared bytes are Ruby heap pages: " \
                             "objects created in free slots, " \
                             "and flags that the collector or the program changed in existing objects")
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
                remedy(alone.keys.sort_by { |one| -all.only(one) }, aging: all.aging?))
      end

      def flags(writes, workers)
        told = writes.flags.sort_by { |_, count| -count }.map do |name, count|
          "#{name.tr("_", " ")} of #{Text::Numbers.count(count / workers, "object")}"
        end
        " (#{told.join(", ")})" if told.any?
      end

      # @param found [Array<Symbol>] categories of writes, the largest first
      # @param aging [Boolean] whether flag bits are ages, against which there is the warm-up
      # @return [String, nil] what to change in the code that writes, or before the fork
      def remedy(found, aging:)
        list = found.filter_map do |category|
          case category
          when :flag_bits then (FREEZE unless aging)
          when :same then rewritten
          when :inline_caches then requests("they fill the inline caches once for all workers")
          end
        end
        list.join("; ") unless list.empty?
      end

      def rewritten
        return HUGE_PAGES if KernelFile.huge_pages == "always"

        @workers.any? { |worker| worker.snapshot.ruby&.version.to_s.start_with?("3.3.") } ? NEWER_RUBY : CLASSES
      end

      FREEZE = "freeze in the parent what workers would freeze"
      HUGE_PAGES = "transparent huge pages are always on, and the kernel copies pages to make huge ones: " \
                   "culet doctor says how to limit them"
      CLASSES = "culet cow --classes names the objects on these pages"
      NEWER_RUBY = "Ruby 3.4 keeps them shared, while 3.3 writes to empty inline caches at each major collection"
      private_constant :FREEZE, :HUGE_PAGES, :CLASSES, :NEWER_RUBY

      # Their saving cannot be predicted.
      #
      # @param how [String] how they help
      def requests(how) = @remedies["requests"]&.then { |remedy| "#{remedy}: #{how}" }

      # Free memory of the parent was free at the fork already, if the parent has been idle since.
      def garbage
        parents = @tree.read_members.select { |member| @workers.any? { |worker| worker.parent_pid == member.pid } }
        free = parents.sum do |parent|
          parent.breakdown.levels.values_at("malloc_free", "ruby_free_slots").compact.sum(&:resident)
        end
        all = parents.sum(&:rss_bytes)
        return unless worth?(free, all)

        verdict("free memory", "#{bytes(free)} (#{percent(free, all)}) of the parent are free: " \
                               "each worker allocates there and unshares the pages")
      end

      def worth?(count, whole) = Gain.new(count, of: whole).worth?

      def bytes(count) = Text::Size.human(count)

      def percent(count, whole) = Text::Numbers.percent(count, whole, digits: 0)

      def verdict(topic, text, remedy = nil) = Verdict.new(topic: topic, text: text, remedy: remedy)
    end
  end
end
