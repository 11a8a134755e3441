# frozen_string_literal: true

require_relative "reading_helper"
require "json"

# What holders and objects retain, against removing each of them and walking again, on dumps made of random graphs.
class RetainDominatorsTest < Minitest::Test
  include RetentionReadingHelper

  # The nodes of the tree have at least so many bytes: with as many, each object is one.
  SLOT = 4096
  SHARED_BY = 4

  # A graph: numbers of objects => those they refer to; roots by category.
  Graph = Struct.new(:edges, :bytes, :roots) do
    def address(number) = format("0x%x", 0x10000 + (number * 0x40))

    def references(list) = list.map { |one| "\"#{address(one)}\"" }.join(", ")

    def lines
      roots.map { |category, list| "{\"type\":\"ROOT\", \"root\":\"#{category}\", \"references\":[#{references(list)}]}\n" } +
        edges.map { |number, list| line(number, list) }
    end

    def line(number, list)
      "{\"address\":\"#{address(number)}\", \"type\":\"OBJECT\", \"slot_size\":#{[bytes[number], 40].min}, " \
        "\"references\":[#{references(list)}], \"memsize\":#{bytes[number]}, \"flags\":{\"wb_protected\":true}}\n"
    end

    # @return [Hash{Integer => true}] what is reached from some objects without another one
    def reach(from, without: nil, within: nil)
      seen = {}
      stack = from - [without]
      until stack.empty?
        number = stack.pop
        next if seen[number] || (within && !within[number])

        seen[number] = true
        stack.concat(edges[number] - [without])
      end
      seen
    end

    def sum(numbers) = numbers.sum { |number| bytes[number] }
  end

  SHAPES = {
    sparse: ->(random, number, count) { Array.new(random.rand(3)) { random.rand(count) } + [(number + 1) % count] },
    dense: ->(random, _, count) { Array.new(random.rand(8)) { random.rand(count) } },
    tree: ->(random, number, count) { [(2 * number) + 1, (2 * number) + 2].select { |one| one < count } + (random.rand(6).zero? ? [random.rand(count)] : []) },
    chain: ->(random, number, count) { [number + 1 < count ? number + 1 : nil, number.positive? ? number - 1 : nil, random.rand(20).zero? ? random.rand(count) : nil].compact },
    forest: ->(random, number, count) { random.rand(3).zero? ? Array.new(random.rand(5)) { [number + 1 + random.rand(9), count - 1].min } : [] }
  }.freeze

  SHAPES.each_key do |shape|
    define_method("test_#{shape}_graphs") { 12.times { |seed| check(graph(shape, Random.new(seed), 20 + (seed * 15))) } }
  end

  def test_a_chain_that_is_referred_to_from_its_head_all_along
    count = 30_000
    edges = (0...count).to_h { |number| [number, number.zero? ? (1...count).step(3).to_a : [number + 1].select { |one| one < count }] }
    document = read_dump(Graph.new(edges, Hash.new(40), { "global_tbl" => [0] }).lines)
    assert_equal [[count * 40, count]], document["holders"].map { |one| one.values_at("bytes", "objects") }
  end

  # The objects of a Ruby process with libraries, held by what classes and Ruby's roots refer to.
  def test_a_real_heap
    graph = real_graph("require 'net/http'; require 'ripper'; TREE = Ripper.sexp(File.read(Net::HTTP.instance_method(:get).source_location[0]))")
    roots = graph.roots["global_tbl"]
    all = graph.reach(roots)
    assert_operator all.size, :>, 20_000
    document = read_dump(graph.lines)
    assert_equal [all.size, graph.sum(all.keys)], document.values_at("objects", "total_bytes")
    objects = document["tree"].select { |one| one[4] }.sort_by { |one| -one[6] }
    assert_operator objects.size, :>, 50
    chosen = all_tests? ? objects.first(20) + objects.drop(20).sample(100, random: Random.new(1)) : objects.first(5)
    check_objects(chosen, graph, roots, all)
  end

  def test_layers_of_roots
    20.times do |seed|
      random = Random.new(seed)
      graph = graph(:sparse, random, 60)
      graph.roots = { "global_tbl" => [3, 7], "machine_context" => [3, 11, 40] }
      document = read_dump(graph.lines)
      durable = graph.reach([3, 7])
      stack = graph.reach([11, 40], within: graph.edges.to_h { |number, _| [number, !durable[number]] })
      of_stack = document["holders"].select { |one| one["kind"] == "stack" }
      assert_equal graph.sum(stack.keys), of_stack.sum { |one| one["bytes"] }
      assert_equal graph.sum(graph.reach([3, 7, 11, 40]).keys), document["total_bytes"]
    end
  end

  private

  def graph(shape, random, count)
    edges = (0...count).to_h { |number| [number, SHAPES[shape].call(random, number, count)] }
    Graph.new(edges, Hash.new { |bytes, number| bytes[number] = SLOT + random.rand(1_000) },
              { "global_tbl" => Array.new(1 + random.rand(7)) { random.rand(count) }.uniq })
  end

  # References to named classes are left out, and theirs are roots, as in the analysis.
  def real_graph(code)
    records = dump(code)
    numbers = records.filter_map { |one| one["address"] }.each_with_index.to_h
    classes, objects = records.partition { |one| one["type"] == "ROOT" || (one["name"] && %w[CLASS MODULE].include?(one["type"])) }
    named = classes.filter_map { |one| one["address"] }.to_h { |address| [address, true] }
    known = ->(one) { (one["references"] || []).reject { |address| named[address] }.filter_map { |address| numbers[address] }.uniq }
    edges = objects.to_h { |one| [numbers[one["address"]], known[one]] }
    Graph.new(edges, objects.to_h { |one| [numbers[one["address"]], one["memsize"] || 40] },
              { "global_tbl" => classes.flat_map { |one| known[one] }.select { |number| edges[number] }.uniq })
  end

  def dump(code)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "heap.json")
      run_program(RbConfig.ruby, "-robjspace", "-e", "#{code}; GC.start; File.open(ARGV[0], 'w') { |file| ObjectSpace.dump_all(output: file) }", path)
      File.foreach(path).map { |line| JSON.parse(line.scrub) }
    end
  end

  def check(graph)
    document = read_dump(graph.lines)
    roots = graph.roots["global_tbl"]
    all = graph.reach(roots)
    assert_equal [all.size, graph.sum(all.keys)], document.values_at("objects", "total_bytes")
    assert_equal graph.edges.size - all.size, document["unreachable_objects"]
    check_tree(document, graph, roots, all)
    check_holders(document, graph, roots, all)
  end

  # Each object: what is lost without it.
  def check_tree(document, graph, roots, all)
    objects = document["tree"].select { |one| one[4] }
    assert_equal all.keys.map { |number| graph.address(number) }.sort, objects.map { |one| one[4] }.sort
    check_objects(objects, graph, roots, all)
  end

  def check_objects(objects, graph, roots, all)
    objects.each do |_, _, _, _, address, own, retained, count|
      number = (address.hex - 0x10000) / 0x40
      left = graph.reach(roots, without: number)
      lost = all.keys.reject { |one| left[one] }
      assert_equal [graph.bytes[number], graph.sum(lost), lost.size], [own, retained, count], "object #{number}"
    end
  end

  # Each root: what it alone reaches. Each set: what just these roots reach.
  def check_holders(document, graph, roots, all)
    reached = roots.to_h { |root| [root, graph.reach([root])] }
    expected = all.keys.group_by { |number| roots.select { |root| reached[root][number] } }
    shared, many = expected.partition { |holders, _| holders.size.between?(2, SHARED_BY) }.then { |some, rest| [some.to_h, rest.to_h.select { |holders, _| holders.size > SHARED_BY }] }
    by_root = document["holders"].to_h { |one| [one["id"], (one["address"].hex - 0x10000) / 0x40] }
    document["holders"].each { |one| assert_equal graph.sum(expected[[by_root[one["id"]]]] || []), one["bytes"] }
    found = document["sets"].to_h { |one| [by_root.values_at(*one["holders"]).sort, one["bytes"]] }
    shared.each { |holders, numbers| assert_equal graph.sum(numbers), found.delete(holders.sort) } if many.empty?
    assert_equal many.values.flatten.then { |numbers| graph.sum(numbers) }, found.values.sum if many.empty?
    assert_equal graph.sum(expected.reject { |holders, _| holders.size == 1 }.values.flatten), document["sets"].sum { |one| one["bytes"] }
  end
end
