# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/model/retention/analysis"
require "culet/model/retention/gems"
require "culet/model/retention/growth"

# Analyses of processes that never were.
module RetentionDocuments
  STEPS = [{ "edge" => "Shop::CACHE", "class" => "Hash", "address" => "0x7f01" }, { "edge" => "[\"GET /a/1\"]", "class" => "Page", "address" => "0x7f02" },
           { "edge" => "@body", "class" => "String", "address" => "0x7f03" }].freeze

  # @param bytes [Integer] the more, the larger its objects
  # @return [Hash] a holder
  def holder(id, name, bytes, kind: "constant", file: "/app/lib/shop.rb", line: 12, path: STEPS, classes: [["String", 100, bytes - (bytes / 4)], ["Page", 10, bytes / 4]])
    { "id" => id, "kind" => kind, "name" => name, "file" => file, "line" => line, "address" => "0x7f01", "class" => "Hash", "bytes" => bytes, "objects" => 111,
      "classes" => classes, "path" => path }
  end

  def set(ids, bytes, paths: [STEPS, STEPS]) = { "holders" => ids, "bytes" => bytes, "objects" => 50, "classes" => [["String", 50, bytes]], "paths" => paths }

  # @return [Hash] a whole document, whose sums are right
  def document(holders: [holder(0, "Shop::CACHE", 400_000), holder(1, "A::LIST", 90_000), holder(2, "B::INDEX", 10_000)], sets: [set([1, 2], 41_000)],
               others: [0, 0, 0], other_sets: [0, 0, 0], **more)
    total = [*holders, *sets].sum { |one| one["bytes"] } + others[2] + other_sets[2]
    { "version" => 1, "pid" => 4242, "ruby" => "3.4.1", "source" => "process", "cpu_seconds" => 0.5, "peak_bytes" => 17_000_000, "fork_seconds" => 0.012,
      "objects" => 1_000, "slot_bytes" => total / 4, "malloc_bytes" => total - (total / 4), "total_bytes" => total, "unreachable_objects" => 10,
      "unreachable_bytes" => 400, "malloc_in_use_bytes" => 5_000_000, "native_bytes" => 3_000_000,
      "holders" => holders, "other_holders" => %w[holders objects bytes].zip(others).to_h, "sets" => sets,
      "other_sets" => %w[sets objects bytes].zip(other_sets).to_h, "classes" => [["String", 900, total / 2], ["Page", 30, total / 4], ["", 70, total / 8]],
      "tree" => [], "selected" => nil }.merge(more.transform_keys(&:to_s))
  end

  # A document with a tree of some levels, as of a web application.
  #
  # @param nodes [Integer] at most
  # @param least [Integer] bytes of a node
  # @return [Hash]
  def large(nodes: 3_000, least: 10_000, seed: 1, **more)
    random = Random.new(seed)
    names = %w[Shop::PageCache::PAGES I18n::BACKEND Router::ROUTES User::SESSIONS Sprockets::CACHE ActiveSupport::Notifications::HUB]
    bytes = names.each_index.map { |at| (40_000_000 / (at + 1)) + random.rand(1_000_000) }
    holders = names.each_with_index.map { |name, at| holder(at, name, bytes[at]) }
    holders += Array.new(40) { |at| holder(names.size + at, "$global_#{at}", 200_000 - (at * 2_000), kind: at.even? ? "global" : "closure", line: at) }
    sets = [set([0, 2], 8_000_000), set([1, 3, 4], 2_000_000)]
    keepers = [*holders, *sets]
    tree = keepers.each_with_index.map { |one, id| [id, nil, one["name"].to_s, one["kind"].to_s, nil, 0, one["bytes"], one["objects"]] }
    rooms = keepers.each_with_index.map { |one, id| [id, one["bytes"]] }
    until rooms.empty? || tree.size >= nodes
      id, room = rooms.shift
      left = room - (room / 20)
      while left > 2 * least && tree.size < nodes
        part = [(left * (0.1 + (0.5 * random.rand))).to_i, least].max
        edge, name = [["[\"GET /a/#{tree.size}\"]", "Page"], ["@body", "String"], ["[#{tree.size}]", "Hash"], ["@list", "Array"], ["iv", "T_IMEMO"]].sample(random: random)
        tree << [tree.size, id, edge, name, format("0x%x", 0x7f0000000000 + (40 * tree.size)), 40, part, part / 100]
        rooms << [tree.size - 1, part] unless name == "String"
        left -= part
      end
    end
    document(holders: holders, sets: sets, others: [900, 9_000, 1_000_000], other_sets: [12, 300, 50_000], tree: tree, **more)
  end

  def analysis(**fields) = read(document(**fields))

  # @return [Culet::Retention::Analysis]
  def read(document, name: "process 4242") = Culet::Retention::Analysis.new(JSON.parse(JSON.generate(document)), name: name)
end
