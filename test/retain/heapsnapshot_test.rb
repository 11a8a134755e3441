# frozen_string_literal: true

require_relative "retain_helper"
require_relative "devtools"

# The file for Chrome: its format, field by field, and what DevTools makes of it.
class RetainHeapsnapshotTest < Minitest::Test
  include RetainHelper

  # Checks a heap snapshot as V8's parser does (v8/src/profiler/heap-snapshot-generator.cc has the format).
  class Snapshot
    attr_reader :nodes, :edges, :strings

    def initialize(text)
      @all = JSON.parse(text)
      @meta = @all.fetch("snapshot").fetch("meta")
      @strings = @all.fetch("strings")
      @nodes = rows("nodes", "node")
      @edges = rows("edges", "edge")
    end

    # @return [Array<String>] what is wrong
    def faults = [*counts, *node_faults, *edge_faults]

    def name(node) = strings[node["name"]]

    def width = @meta["node_fields"].size

    private

    def rows(key, kind)
      fields = @meta.fetch("#{kind}_fields")
      list = @all.fetch(key)
      raise "#{key} are no whole rows" unless (list.size % fields.size).zero?

      list.each_slice(fields.size).map { |row| fields.zip(row).to_h }
    end

    def counts
      [("node_count is not #{nodes.size}" unless @all["snapshot"]["node_count"] == nodes.size),
       ("edge_count is not #{edges.size}" unless @all["snapshot"]["edge_count"] == edges.size),
       ("edges of nodes do not add up" unless nodes.sum { |one| one["edge_count"] } == edges.size),
       ("fields of types differ" unless %w[node edge].all? { |kind| @meta["#{kind}_types"].size == @meta["#{kind}_fields"].size }),
       ("ids are not unique" unless nodes.map { |one| one["id"] }.uniq.size == nodes.size),
       ("strings are no strings" unless strings.all?(String))].compact
    end

    def node_faults
      types = @meta["node_types"].first
      nodes.reject { |one| one["type"].between?(0, types.size - 1) && one["name"].between?(0, strings.size - 1) && one["self_size"] >= 0 }.first(3).map { |one| "node #{one}" }
    end

    def edge_faults
      types = @meta["edge_types"].first
      edges.reject do |one|
        named = !%w[element hidden].include?(types[one["type"]])
        one["type"].between?(0, types.size - 1) && (one["to_node"] % width).zero? && one["to_node"].between?(0, (nodes.size - 1) * width) &&
          (!named || one["name_or_index"].between?(0, strings.size - 1))
      end.first(3).map { |one| "edge #{one}" }
    end
  end

  def test_every_field_is_right
    with_snapshot do |text, document|
      snapshot = Snapshot.new(text)
      assert_empty snapshot.faults
      assert_in_delta document["objects"], snapshot.nodes.size, document["objects"] / 10
      assert_in_delta document["total_bytes"], snapshot.nodes.sum { |one| one["self_size"] }, document["total_bytes"] / 10
      assert_operator snapshot.nodes.count { |one| snapshot.name(one) == "Shop::Page" }, :>=, 5_000
      refute(snapshot.strings.any? { |one| one.include?("GET /a/") }, "texts stay in the process")
    end
  end

  def test_devtools_opens_it
    skip "no browser to open the file with; install one with `apt-get install chromium`" unless Browser::PROGRAM
    with_snapshot do |text, document|
      Browser.use do |browser|
        found = DevTools.load(browser, text)
        assert_in_delta document["total_bytes"], found["total"], document["total_bytes"] / 10
        page = found["classes"].find { |name, *| name == "Shop::Page" }
        assert_equal 5_000, page[1]
        # What one page retains: itself and its String.
        assert_operator page[3], :>, 400
      end
    end
  end

  def test_of_a_dump
    Dir.mktmpdir do |folder|
      path = File.join(folder, "app.heapsnapshot")
      report(dump(folder, KEEPS), "--heapsnapshot", path)
      assert_empty Snapshot.new(File.read(path)).faults
    end
  end

  private

  def with_snapshot
    with_agent(KEEPS + WAITING) do |pid|
      Dir.mktmpdir do |folder|
        path = File.join(folder, "app.heapsnapshot")
        document = retain(pid, "--heapsnapshot", path)
        assert_includes @err, "culet: wrote #{path}\n"
        yield File.read(path), document
      end
    end
  end
end
