# frozen_string_literal: true

require_relative "../gain"
require_relative "../report/verdicts"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "family"
require_relative "labels"

module Culet
  module Cow
    # What a family's figures mean, in words.
    class Verdicts
      Verdict = Report::Verdict
      # These keep what is free in lists whose links stand in the freed blocks; jemalloc and culet do not.
      WRITERS = %w[glibc tcmalloc mimalloc].freeze
      # What the parent can settle before the fork.
      REMEDIES = {
        flag_bits: "Culet.warmup before the fork makes survivors old; freeze before the fork what workers freeze",
        collector: "Culet.warmup before the fork leaves fewer free slots: each collection writes the lists of free ones anew",
        inline_caches: "have the parent do some of the workers' work before the fork, a few requests: what calls look up is found then, once for all",
        metadata: "culet run -- COMMAND writes nothing into freed blocks",
        reuse: "Culet.warmup before the fork leaves fewer holes"
      }.freeze
      private_constant :Verdict, :WRITERS, :REMEDIES

      # @param family [Family]
      def initialize(family)
        @family = family
        @workers = family.workers.select(&:forked)
      end

      # @return [Array<Report::Verdict>] the right figure and the wrong one, what sharing was lost, and what may keep it
      def list
        return [] if @family.read_members.empty?

        [*figures, *(@workers.empty? ? alone : sharing), *each_alone]
      end

      private

      def figures
        return [] if @family.members.size < 2

        sum = @family.total_rss_bytes
        pays = @family.total_pss_bytes
        [verdict("what it costs", "all of them together take #{bytes(pays)} (PSS); adding up their resident figures gives #{bytes(sum)}, " \
                                  "#{format("%.1f", sum.fdiv([pays, 1].max))} times as much, because it counts what is shared in each. A worker killer that goes by " \
                                  "resident bytes ends workers for memory that is not theirs: have it go by private bytes or PSS")]
      end

      def alone
        text = @family.members.size == 1 ? "it has forked nobody, so there is nothing to share" : "none of them shares its parent's memory: each runs a program of its own"
        [verdict("sharing", text)]
      end

      def sharing
        shares = mean
        lost = Gain.new(shares.unshared, of: shares.inherited)
        [kept(shares, lost), *([malloc, ruby, written, garbage].compact if lost.worth?)]
      end

      # What a worker has on average.
      def mean(*levels)
        all = @workers.map { |worker| (levels.empty? ? worker.census.levels.values : worker.census.levels.values_at(*levels).compact).reduce(Shares.none, :+) }
        Shares.new(*all.map(&:to_a).transpose.map { |values| values.sum / @workers.size })
      end

      # What `culet report` advises for the member of which most would go away: sharing is not all there is to gain.
      def each_alone
        found = @family.read_members.to_h { |member| [member, Report::Verdicts.new(Report::Ledger.new(member.snapshot)).changes] }.reject { |_, list| list.empty? }
        member, list = found.max_by { |one, _| Advice.trim(one.snapshot)&.bytes.to_i }
        return [] unless member

        more = found.size > 1 ? ", one of #{found.size} such processes" : ""
        list.map { |one| verdict(one.topic, "process #{member.pid}#{more}: #{one.text}", one.remedy) }
      end

      def kept(shares, lost)
        verdict("sharing", "of #{bytes(shares.inherited)} that a worker got from its parent it has made #{bytes(shares.unshared)} (#{percent(shares.unshared, shares.inherited)}) " \
                           "its own by now, and has added #{bytes(shares.fresh)}#{"; that is the average of #{@workers.size}" if @workers.size > 1}#{lost.remark}")
      end

      def malloc
        lost = mean("malloc_used", "malloc_free", "malloc_metadata", "malloc_unsplit").unshared
        return unless worth?(lost, mean.inherited)
        return malloc_reused(lost) unless WRITERS.include?(allocator)

        verdict("malloc", "#{bytes(lost)} of it are malloc's: #{allocator} writes its lists into blocks that are freed, and new blocks go into the holes between old ones",
                "culet run -- COMMAND writes nothing into freed blocks; Culet.warmup, or Process.warmup (Ruby 3.3 and later), before the fork leaves fewer holes")
      end

      def malloc_reused(lost)
        verdict("malloc", "#{bytes(lost)} of it are malloc's: blocks that workers wrote, or that came into holes between old ones",
                "Culet.warmup before the fork leaves fewer holes; with Culet::Warmup.requests it also asks for pages, so that what their first " \
                "requests build is there once, and not in each worker")
      end

      def ruby
        lost = mean("ruby_objects", "ruby_free_slots", "ruby_unsplit").unshared
        return unless worth?(lost, mean.inherited)

        verdict("Ruby's pages", "#{bytes(lost)} of it are pages of Ruby's heap: new objects in slots that were free at the fork, and flags that the collector or the program " \
                                "changed in old ones", "Culet.warmup, or Process.warmup (Ruby 3.3 and later), before the fork: survivors are old then, and holes are closed")
      end

      # Told by what is alone on its pages: these would still be shared without it. On average, as all is here.
      def written
        members = @workers.select(&:writes)
        all = members.map(&:writes).reduce(:+) or return
        alone = Labels::WRITES.to_h { |one, title| [one, [title, all.only(one) / members.size]] }.select { |_, (_, count)| worth?(count, all.bytes / members.size) }
        return if alone.empty?

        causes = alone.sort_by { |_, (_, count)| -count }.map { |one, (title, count)| "#{title} #{bytes(count)}#{flags(all, members.size) if one == :flag_bits}" }
        verdict("what wrote there", "of the #{bytes(all.bytes / members.size)} of pages of a worker whose bytes were compared, these have but one cause: #{causes.join("; ")}",
                remedy(alone.keys.sort_by { |one| -all.only(one) }))
      end

      def flags(writes, workers)
        told = writes.flags.sort_by { |_, count| -count }.map { |name, count| "#{name.tr("_", " ")} of #{Text::Numbers.count(count / workers, "object")}" }
        " (#{told.join(", ")})" if told.any?
      end

      def remedy(found)
        names = allocator == "culet" ? found - [:metadata] : found
        names.filter_map { |one| REMEDIES[one] }.first
      end

      # What is free in the parent was free at the fork, if the parent rests since.
      def garbage
        parents = @family.read_members.select { |member| @workers.any? { |worker| worker.parent_pid == member.pid } }
        free = parents.sum { |parent| parent.census.levels.values_at("malloc_free", "ruby_free_slots").compact.sum(&:resident) }
        all = parents.sum(&:rss_bytes)
        return unless worth?(free, all)

        verdict("holes", "#{bytes(free)} (#{percent(free, all)}) of the parent are free memory: each worker fills it with its own objects, in pages that it stops sharing",
                "collect and give back before the fork: Culet.warmup")
      end

      def allocator = @workers.first.snapshot.allocator.name

      def worth?(count, whole) = Gain.new(count, of: whole).worth?

      def bytes(count) = Text::Size.human(count)

      def percent(count, whole) = "#{(100 * count.fdiv([whole, 1].max)).round} %"

      def verdict(topic, text, remedy = nil) = Verdict.new(topic: topic, text: text, remedy: remedy)
    end
  end
end
