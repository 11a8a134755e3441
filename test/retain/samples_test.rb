# frozen_string_literal: true

require_relative "retain_helper"
require "culet/model/kept_sites"
require "culet/model/profile/inquiry"
require "culet/model/retention/growth"
require "culet/model/retention/reading"
require "culet/tools/profile"
require "culet/tools/retain"

# From the code that allocated to what keeps it, and back: the samples of the profile among the objects of the process.
class RetainSamplesTest < Minitest::Test
  include RetainHelper

  # Objects and blocks of malloc; one per 2 KiB is sampled.
  PROGRAM = <<~RUBY
    class Shop; PAGES = {}; CALLBACKS = []; ORDERS = []; BY_NUMBER = {}; end
    def page(name) = Shop::PAGES[name] = "body of \#{name} " * 40
    def on(text) = Shop::CALLBACKS << -> { text.size }
    def order(number) = Shop::ORDERS << (Shop::BY_NUMBER[number] = "order \#{number} " * 40)
    Culet::Profile.start(sample_bytes: 2048)
    Culet::Profile.booted
    $stdout.sync = true
    puts "up"
    while (number = gets)
      2_000.times do |one|
        Culet::Profile.label(request: "GET /search") { page("\#{number}/\#{one}") }
        on("event \#{number} \#{one} " * 20)
        order(number.to_i * 10_000 + one)
        "garbage \#{one}" * 50
      end
      GC.start
      puts "done"
    end
  RUBY
  LINES = { page: 2, on: 3, order: 4 }.freeze

  def test_what_keeps_the_sites_of_a_profile
    with_steps(2) do |_, looks|
      data, analysis = looks.last
      kept = Culet::KeptSites.new(data, [analysis])
      found = LINES.transform_values { |line| kept.holding(data.sites(:live).select { |site| site.place.to_s.end_with?("app.rb:#{line}") }) }
      assert_equal ["Shop::PAGES", "constant"], [found[:page].name, found[:page].kind]
      assert_equal "Shop::CALLBACKS", found[:on].name
      assert_match(/\Akept by Shop::CALLBACKS -> Array \[\d+\] -> Proc/, found[:on].to_s)
      assert_includes found[:order].name, "Shop::BY_NUMBER"
    end
  end

  def test_growth_says_where_it_was_allocated
    with_steps(Culet::Retention::Growth::LOOKS) do |path, looks|
      growth = Culet::Retention::Growth.new(looks.each_with_index.map { |(_, analysis), at| Culet::Retention::Growth::Look.new(at, analysis) })
      growth.sites = Culet::KeptSites.new(looks.last.first, [growth.analysis])
      row = growth.rows.find { |one| one.keeper.title.include?("Shop::PAGES") }
      assert_equal "allocated in #{path}:2 by GET /search", growth.origin(row).to_s
      assert_includes Culet::Retain::GrowthTable.new(growth).to_s.gsub(/\n +/, " "), "allocated in #{path}:2 by GET /search"
      document = Culet::Retain::Document.new(growth.analysis, growth: growth).to_h["growth"]["holders"].find { |one| one["name"] == "Shop::PAGES" }
      assert_equal({ "request" => "GET /search" }, document["allocated"]["labels"])
    end
  end

  def test_the_profiles_reports_name_the_holder
    with_steps(5) do |path, looks|
      data, analysis = looks.last
      data.define_singleton_method(:growing) { ["#{path}:2"] }
      kept = Culet::KeptSites.new(data, [analysis])
      sites = Culet::Profile::Document.new(data, view: :growth, kept: kept).to_h["sites"]
      assert_includes sites.select { |site| site["holder"] }.map { |site| [site["grows"], site["holder"]["name"]] }, [true, "Shop::PAGES"]
      assert_includes Culet::Profile::Table.new(data, view: :growth, kept: kept).to_s, "kept by Shop::PAGES -> Hash"
    end
  end

  # It waits at its end for the look. So many rounds that growth is certain where slots have the strings (Ruby 3.2 and later).
  def test_a_command
    leaks = File.expand_path("../profile/leaks", __dir__)
    command = [RbConfig.ruby, "-W0", File.expand_path("../profile/leak_load.rb", __dir__), "#{leaks}/constant_array.rb"]
    first = err = nil
    # More of them where the program stood still for most of the time.
    [120, 600].find do |rounds|
      out, err = assert_culet_success("profile", "--view", "growth", "--sample", "32k", "--by", "line", "--json", "--", *command, rounds)
      (first = JSON.parse(out)["rows"].first)["grows"]
    end
    assert_equal [true, "KEPT", "constant"], [first["grows"], *first["holder"]&.values_at("name", "kind")], "#{err}#{first}"
    out, err, = run_culet("profile", "--view", "growth", "--no-holders", "--sample", "32k", "--by", "line", "--json", "--", *command, "120")
    assert_nil JSON.parse(out)["rows"].first["holder"], err
  end

  def test_a_profile_that_is_off
    with_agent(WAITING) do |pid|
      error = assert_raises(Culet::Error) { Culet::Retention::Reading.of_process(pid, samples: true) }
      assert_match(/its memory profile is off\z/, error.message)
    end
  end

  # The samples of another profile, or of another process, are nobody's.
  def test_samples_of_another_profile
    with_steps(1) do |_, ((data, analysis))|
      recording = data.recordings.first
      refute_empty analysis.sampled_sites
      assert analysis.samples_of?(recording)
      recording.define_singleton_method(:generation) { 7 }
      refute analysis.samples_of?(recording)
      assert_nil Culet::KeptSites.new(data, [analysis]).holding(data.sites(:live))
    end
  end

  private

  # Yields the program's path, and the profile and the analysis after each step.
  def with_steps(count)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "app.rb")
      File.write(path, PROGRAM)
      IO.popen([on_culet, RbConfig.ruby, "-W0", "-I#{LIBRARY}", "-rculet/profile", path], "r+") do |program|
        program.gets
        inquiry = Culet::Profile::Inquiry.new(program.pid)
        looks = Array.new(count) do |number|
          program.puts(number)
          assert_equal "done\n", program.gets
          analysis = Culet::Retention::Analysis.new(Culet::Retention::Reading.of_process(program.pid, samples: true), name: "it")
          [Culet::Profile::Data.new([Culet::Profile::Recording.new(inquiry.read, name: "it")]), analysis]
        end
        yield path, looks
      end
    end
  end

  def on_culet = TestHelper::NEUTRAL.merge(Culet::Allocators.parse("culet").environment({}))
end
