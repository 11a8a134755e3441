# frozen_string_literal: true

require "test_helper"
require "culet/model/retention/reading"

# Programs with the agent, and what the walk over their objects finds.
module RetentionReadingHelper
  # Reported once all is there.
  UP = "GC.start; puts :up; $stdout.flush; sleep"

  # Yields the pid of a Ruby program with the agent.
  #
  # @param code [String] which prints a line when all is there
  def with_objects(code, env: {}, &block)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "app.rb")
      File.write(path, code)
      with_program(RbConfig.ruby, "-W0", "-I#{File.join(TestHelper::ROOT, "lib")}", "-rculet/agent", path, env: TestHelper::NEUTRAL.merge(env), &block)
    end
  end

  # @return [Hash] the analysis, whose sums are right
  def read(pid, **options) = assert_sums(Culet::Retention::Reading.of_process(pid, **options))

  # Ruby 3.3 and 3.4 let nobody stop Ractors.
  #
  # @return [Boolean] whether the program has Ractors and looks at it are refused, which is checked
  def refused?(pid, code)
    return false unless code.include?("Ractor") && RUBY_VERSION.match?(/\A3\.[34]\./)

    error = assert_raises(Culet::Error) { read(pid) }
    assert_match(/several Ractors run, and this Ruby has no lock to stop them\z/, error.message)
  end

  # @return [Hash] likewise, of a file's lines
  def read_dump(lines, **options)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "heap.json")
      File.write(path, lines.join)
      assert_sums(Culet::Retention::Reading.of_dump(path, **options))
    end
  end

  # Each byte and each object once.
  def assert_sums(document)
    rows = [*document["holders"], document["other_holders"], *document["sets"], document["other_sets"]]
    assert_equal document["total_bytes"], rows.sum { |row| row["bytes"] }
    assert_equal document["objects"], rows.sum { |row| row["objects"] }
    assert_equal document["total_bytes"], document["slot_bytes"] + document["malloc_bytes"]
    assert_equal document["total_bytes"], document["classes"].sum(&:last) if document["classes"].size < 5_000
    document
  end

  # Holders and sets, the largest first: a set has the names of its holders.
  #
  # @return [Array<Array(Integer, Array<String>, String)>] bytes, "kind name" of each holder, and the path as a text
  def rows(document)
    names = document["holders"].to_h { |one| [one["id"], "#{one["kind"]} #{one["name"]}"] }
    holders = document["holders"].map { |one| [one["bytes"], [names[one["id"]]], path(one["path"])] }
    sets = document["sets"].map { |one| [one["bytes"], names.values_at(*one["holders"]), one["paths"].map { |steps| path(steps) }.join(" | ")] }
    (holders + sets).sort_by { |bytes, *| -bytes }
  end

  def path(steps) = steps.map { |step| "#{step["edge"]} #{step["class"]}" }.join(" > ")
end
