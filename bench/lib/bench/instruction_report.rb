# frozen_string_literal: true

module Bench
  # Counted instructions as a Markdown table, a line per probe.
  class InstructionReport
    # @param counts [Hash{Probe => Hash{String => Float}}] per operation, by the contender's name
    # @param contenders [Array<Contender>]
    def initialize(counts, contenders)
      @counts = counts
      @contenders = contenders
    end

    # @return [String]
    def to_s
      head = ["instructions per operation", *@contenders.map(&:name), "culet to the best peer"]
      rows = [head, ["---", *Array.new(@contenders.size + 1, "---:")], *@counts.map { |probe, counted| row(probe, counted) }]
      "    bench/run #{@counts.keys.map(&:name).join(" ")} --instructions\n\n#{rows.map { |cells| "| #{cells.join(" | ")} |" }.join("\n")}\n"
    end

    private

    def row(probe, counted)
      ours, peers = @contenders.partition(&:culet?).map { |list| counted.slice(*list.map(&:name)) }
      name, best = peers.min_by(&:last)
      own = ours.values.last
      ["#{probe.name}: #{probe.about}", *@contenders.map { |contender| counted[contender.name]&.round || "-" },
       own && best ? format("%.2f (%s)", own / best, name) : "-"]
    end
  end
end
