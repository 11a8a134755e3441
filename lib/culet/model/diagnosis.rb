# frozen_string_literal: true

require_relative "../text/size"
require_relative "diagnosis/observation"
require_relative "diagnosis/growth"
require_relative "diagnosis/history"
require_relative "diagnosis/causes"
require_relative "diagnosis/fit"
require_relative "diagnosis/ranking"

module Culet
  # Explains the size of a process tree: one verdict, the evidence, and the
  # remedies in the order of their savings.
  #
  #   Observation   the readings of the watch
  #   Growth        whether the memory in use grows steadily, and whether Ruby objects or native blocks grow
  #   Causes        the other causes of the size
  #   Fit           the number of workers that fit into a size of memory
  #   Ranking       the remedies, the largest saving first
  class Diagnosis
    # Values of `verdict` in --json, in the order of the manual.
    VERDICTS = %w[ruby_leak native_leak bloat malloc_free ruby_heap sharing code limit none unknown].freeze
    EVIDENCE = 3
    private_constant :EVIDENCE

    # @return [Observation]
    attr_reader :observation
    # @return [Growth]
    attr_reader :growth
    # @return [Causes]
    attr_reader :causes
    # @return [Fit, nil] nil: not requested
    attr_reader :fit

    # @param observation [Observation]
    # @param unused [Hash, nil] as of `culet requires --unused --json`
    # @param fit_bytes [Integer, nil] memory that workers are to fit into
    def initialize(observation, unused: nil, fit_bytes: nil)
      @observation = observation
      @growth = Growth.new(observation)
      @causes = Causes.new(observation, unused: unused)
      @fit = Fit.new(observation, limit_bytes: fit_bytes) if fit_bytes
    end

    # @return [String] one of VERDICTS
    def verdict
      return { ruby: "ruby_leak", native: "native_leak" }.fetch(growth.verdict, "unknown") if growing?
      return "limit" if close?

      causes.list.first&.name || (doubt ? "unknown" : "none")
    end

    # @return [String] the verdict in a sentence
    def sentence
      return growing if growing?
      return limit if close?

      causes.list.first&.sentence || nothing
    end

    # @return [Array<Evidence>] the figures that support the verdict
    def evidence
      return growth_evidence if growing?

      found = causes.list.first&.evidence || [figure("total_bytes", observation.total_bytes), *in_use]
      if close?
        found = [figure("limit_bytes", observation.limit["limit_bytes"]),
                 figure("used_bytes", observation.limit["used_bytes"]), *found]
      end
      found.first(EVIDENCE)
    end

    # @return [Array<String>] sentences on doubts and on further steps
    def remarks = [*open_growth, *slowing, *observation.problems]

    # @return [Array<Remedy>] the best first
    def remedies = ranking.list

    # @return [Array<String>] names of remedies that are not in place, whose saving is too small or cannot be predicted
    def others = ranking.others

    # @return [String, nil] the next step, if the verdict is open
    def next_step
      return unless verdict == "unknown"
      return "look at that process: culet explain #{growth.unread}" if growth.unread
      if short? || growth.verdict == :undecided || observation.agent?
        return "watch longer: culet explain #{root} --for #{longer}"
      end

      "load the agent, which tells what keeps memory: #{RubyOptions.advice("agent")} COMMAND"
    end

    private

    def ranking = @ranking ||= Ranking.new(observation, growth: growth, causes: causes)

    # Too few readings for a trend.
    def short? = observation.retention.nil? && growth.short?

    # Whether most looks are missing, as on a busy machine, so that garbage in a large heap is not known.
    def unlooked? = observation.looks_late && observation.private_bytes(*HEAP_IN_USE) >= causes.least("ruby_heap")

    # Whether malloc has much memory of which the part in use is not known.
    def unsplit?
      observation.used_share.nil? && observation.private_bytes("malloc_unsplit") >= causes.least("malloc_free")
    end

    # Growth of an unknown kind or end is the verdict if no cause explains the size.
    def growing?
      %i[ruby native].include?(growth.verdict) || (growth.verdict != :none && (causes.list.empty? || unexplained?))
    end

    # Whether the growth is large and there are no looks: a seeming cause may then be a part of the growth.
    def unexplained? = observation.retention.nil? && growth.bytes >= causes.least("growth")

    def open_growth
      return [] if growing? || growth.verdict == :none

      ["the memory in use of #{grower} grew by #{human(growth.per_minute.first)} a minute meanwhile"]
    end

    def root = observation.members.first.pid

    def longer = "#{[(observation.seconds / 60 * 5).ceil, 5].max}m"

    def close?
      limit = observation.limit
      limit && Thresholds.close_to_limit?(limit["used_bytes"], limit["limit_bytes"])
    end

    def human(bytes) = Text::Size.human(bytes)

    def growing
      subject = "the memory in use of #{grower} grows by #{human(growth.per_minute.first)} a minute"
      case growth.verdict
      when :ruby then "a leak of Ruby objects: #{keepers || subject}#{beside}"
      when :native then "a leak of native memory: #{subject}#{growth.origin}, and #{growth.native_reason}"
      when :objects
        "cannot tell yet: what the objects of #{grower} take grows by #{human(growth.per_minute.first)} a minute, " \
        "and no holder keeps more at each look"
      when :unclear then "cannot tell yet: #{subject} all the time, and whether Ruby objects keep it is not known"
      else "cannot tell yet: #{subject}, but more slowly, or at a rising load; a boot and a cache look like that"
      end
    end

    def grower = growth.worker_weight > 1 ? "the workers" : "process #{growth.process.pid}"

    # @return [String, nil] nil without looks
    def keepers
      where = " in the workers" if growth.worker_weight > 1
      found = growth.holders.map do |row|
        "#{row.keeps} #{human(growth.per_minute([row]).first)} more a minute#{where}#{growth.origin(row)}"
      end
      found.join("; ") if found.any?
    end

    # Objects of extensions may have memory that they do not report.
    def beside
      native = growth.native_beside or return
      "; native memory, which these objects may own, grows by #{human(native)} a minute"
    end

    def limit
      used, most = observation.limit.values_at("used_bytes", "limit_bytes")
      why = causes.list.first
      "close to the limit: #{human(used)} of #{human(most)} are in use; " \
        "#{why ? why.sentence : "the program needs them"}"
    end

    # @return [String, nil] the reason why a cause may be missing
    def doubt
      return "#{observation.seconds.round} s do not show whether memory grows" if short?
      return "too few looks at the heap tell garbage from objects in use" if unlooked?
      return "memory in use falls too often to tell work that peaks from garbage" if causes.unclear?
      return "process #{growth.unread}, whose memory was not read, grows all the time" if growth.unread

      "its malloc does not show how much of #{human(observation.private_bytes("malloc_unsplit"))} is free" if unsplit?
    end

    def nothing
      return "cannot tell yet: #{doubt}" if doubt

      total = observation.total_bytes
      saved = remedies.first&.saves_bytes.to_i
      return "nothing is wrong: the program needs #{human(total)}" if saved < Thresholds::CAUSE_SHARE * total

      "no single cause stands out: the first remedy saves #{human(saved)} of #{human(total)}"
    end

    def growth_evidence
      rate, low, high = growth.per_minute
      native = growth.native_beside
      [Evidence.new(name: "growth_bytes_per_minute", value: rate, low: low, high: high),
       (figure("native_growth_bytes_per_minute", native) if native), *in_use,
       figure("total_bytes", observation.total_bytes)].compact.first(EVIDENCE)
    end

    def in_use
      last = growth.trend.points.last or return []
      [figure("in_use_bytes", last.last)]
    end

    def figure(name, value) = Evidence.new(name: name, value: value)

    # Causes that the verdict none cannot exclude.
    def slowing
      return [] if verdict != "none" || observation.retention || growth.trend.points.size < Trend::LEAST_POINTS

      ["a growth of less than #{human(growth.detectable_per_minute)} a minute would not show in " \
       "#{observation.seconds.round} s"]
    end
  end
end
