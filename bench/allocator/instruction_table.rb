# frozen_string_literal: true

module AllocatorBench
  # Instructions as a Markdown table, a line for each probe.
  class InstructionTable
    # @param counts [Hash{Probe => Hash{String => Float}}] per operation, by the contender's name
    # @param contenders [Array<Contender>]
    def initialize(counts, contenders)
      @counts = counts
      @contenders = contenders
    end

    # @return [String]
    def to_s
      head = ["instructions per operation", *@contenders.map(&:name), "culet to the best other"]
      rows = [head, ["---", *Array.new(@contenders.size + 1, "---:")],
              *@counts.map { |probe, counted| row(probe, counted) }]
      table = rows.map { |cells| "| #{cells.join(" | ")} |" }.join("\n")
      "    bench/allocator/run #{@counts.keys.map(&:name).join(" ")} --instructions\n\n#{table}\n"
    end

    private

    def row(probe, counted)
      ours, others = @contenders.partition(&:culet?).map { |list| counted.slice(*list.map(&:name)) }
      name, best = others.min_by(&:last)
      own = ours.values.last
      ["#{probe.name}: #{probe.about}", *@contenders.map { |contender| counted[contender.name]&.round || "-" },
       own && best ? format("%.2f (%s)", own / best, name) : "-"]
    end
  end
end
