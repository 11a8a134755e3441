# frozen_string_literal: true

# Writes streams as sampler/core/profile.h describes them.
class StreamMaker
  APP = "/srv/shop/app/orders.rb"

  attr_accessor :pid, :sample_bytes, :generation, :lost, :epoch

  def initialize(pid: 42, sample_bytes: 524_288, generation: 0, lost: 0, epoch: 5)
    @pid = pid
    @sample_bytes = sample_bytes
    @generation = generation
    @lost = lost
    @epoch = epoch
    @lines = []
    @nodes = {}
    @frames = {}
    @labels = {}
    @types = {}
  end

  def mapping(start, finish, path, offset: 0, build_id: "-")
    @lines << "M #{start.to_s(16)} #{finish.to_s(16)} #{offset.to_s(16)} #{build_id} #{path}"
    self
  end

  # A Ruby frame's word.
  def ruby(path, line, label, first: 1)
    id = @frames[[path, first, label]] ||= (@frames.size + 1).tap { |number| @lines << "F #{number} #{first} #{path}\t#{label}" }
    (1 << 56) | (id << 24) | line
  end

  def mark(number) = (2 << 56) | number

  # @param words [Array<Integer>] innermost first
  def stack(words)
    words.reverse.reduce(0) do |parent, word|
      @nodes[[parent, word]] ||= (@nodes.size + 1).tap { |id| @lines << "K #{id} #{parent} #{word.to_s(16)}" }
    end
  end

  def label(pairs)
    return 0 if pairs.empty?

    @labels[pairs] ||= (@labels.size + 1).tap { |id| @lines << "L #{id} #{pairs.map { |pair| pair.join("=") }.join("\t")}" }
  end

  def type(name)
    return 0 unless name

    @types[name] ||= (@types.size + 1).tap { |id| @lines << "T #{id} #{name}" }
  end

  # @param views [Hash{String => Array(Integer, Integer)}] letter => samples, size of each
  def site(words, views, kind: "m", labels: {}, type: nil)
    sums = views.map { |letter, (samples, size)| sums(letter, samples, size) }
    stack = stack(words)
    @lines << "S #{kind} #{stack} #{label(labels)} #{type(type)} #{sums.join(" ")}"
    self
  end

  # The base of growth: resident bytes then and at the end; span in nanoseconds.
  def growth(base:, taken:, span:)
    @lines << "G 1790000000000000000 #{span} #{base} #{taken}"
    self
  end

  # When the survivors of a site were added.
  #
  # @param site [Integer] its number, from 1 on
  # @param periods [Hash{Integer => Integer}] period => samples
  # @param dropped [Integer] samples that were live at the base and are gone
  def births(site, periods, size, dropped: 0)
    @lines << "W #{site} #{periods.map { |period, samples| sums(period, samples, size) }.join(" ")}"
    @lines << "D #{site} #{sums("+", periods.values.sum, size)}#{" #{sums("-", dropped, size)}" if dropped.positive?}"
    self
  end

  # Samples that other processes may have.
  #
  # @param site [Integer] its number, from 1 on
  # @param ids [Range]
  def shared(site, ids, size, inherited: false)
    weight = 1 / (1 - Math.exp(-size / @sample_bytes.to_f))
    ids.each { |id| @lines << format("I %d %d %d %.3fe0 %d", site, id, inherited ? 1 : 0, weight, size) }
    self
  end

  def sums(name, samples, size)
    weight = 1 / (1 - Math.exp(-size / @sample_bytes.to_f))
    format("%s %d %.3fe0 %.3fe0 %.3fe0", name, samples, samples * weight, samples * weight * size, samples * weight * (weight - 1) * size * size)
  end

  def to_s
    head = ["culet-profile 1", "P #{pid} #{sample_bytes} 1790000000000000000 1790000030500000000 #{epoch} #{generation} #{lost}", "R 50000000 60000000"]
    all = head + @lines
    "#{all.join("\n")}\nE #{all.size}\n"
  end
end
