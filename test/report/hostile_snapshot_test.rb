# frozen_string_literal: true

require_relative "../scope/scope_helper"
require "culet/tools/report"

# A snapshot may come from anybody: whatever its records say, there is a report of it or a sentence, never anything else.
class HostileSnapshotTest < Minitest::Test
  include ScopeHelper

  ODD = [nil, true, "", "x\e[31m", -1, 0, 1, 1.5, 1e308, 2**64, 10**30, [], [[]], [nil], {}, { "a" => 1 }, "9" * 5000].freeze
  TURNS = 400

  def test_one_value_is_another
    with_program(RbConfig.ruby, "--disable-gems", "-e", WAITING) do |pid|
      records = Culet::Scope::Stream.new(Culet::Scope.streams(pid.to_s).first).enum_for(:each_record).to_a
      random = Random.new(20)
      outcomes = Array.new(TURNS) { outcome(changed(records, random)) }
      assert_includes outcomes, :report
      assert_includes outcomes, :sentence
    end
  end

  private

  def changed(records, random)
    index = records.each_index.select { |at| records[at].first == "J" }.sample(random: random)
    fields = JSON.parse(records[index].last)
    # Of the many mappings' few keys and of the process's alike.
    fields[(fields.keys - ["kind"]).sample(random: random)] = ODD.sample(random: random)
    writer = Writer.new
    records.each_with_index { |(type, payload), at| writer.record(type, at == index ? JSON.generate(fields) : payload) }
    writer.close
  end

  def outcome(stream)
    snapshot = Culet::Scope::Builder.new(stream, name: "it").call
    text = Culet::Report::Table.new(snapshot).to_s + Culet::Report::DifferenceTable.new(Culet::Report::Difference.new(snapshot, snapshot)).to_s
    refute_includes text, "\e"
    document = JSON.parse(JSON.generate(Culet::Report::Document.new(snapshot).to_h))
    assert_equal document["rss_bytes"], document["levels"].values.sum
    JSON.generate(Culet::Report::Difference.new(snapshot, snapshot).to_h)
    :report
  rescue Culet::Error => e
    assert_match(/\Ait is damaged: .+/, e.message)
    :sentence
  end
end
