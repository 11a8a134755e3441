# frozen_string_literal: true

require_relative "retain_helper"
require "culet/tools/retain"
require "culet/model/retention/reading"

# Programs with one planted leak each, under load: growth names what keeps it, and the line that allocates it. Programs
# without one: growth says so. A load that a busy machine keeps from running shows no growth, so these are behind
# bin/test --all.
class RetainLeaksTest < Minitest::Test
  include RetainHelper

  SHARED = File.expand_path("../profile/leaks", __dir__)
  # File => what the first row of growth names.
  LEAKS = {
    "#{SHARED}/cache_by_path.rb" => /Page.*@cache/, "#{SHARED}/class_variable.rb" => /@@log/, "#{SHARED}/closure.rb" => /CALLBACKS/,
    "#{SHARED}/constant_array.rb" => /KEPT/, "#{SHARED}/event_handlers.rb" => /Bus::HANDLERS/, "#{SHARED}/fiber.rb" => /FIBERS/,
    "#{SHARED}/finalizer.rb" => /finalizer/, "#{SHARED}/hash_default.rb" => /PAGES/, "#{SHARED}/instance_variable.rb" => /REGISTRY/,
    "#{SHARED}/list_that_shrinks_too_little.rb" => /ORDERS/, "#{SHARED}/memoized.rb" => /RATES/, "#{SHARED}/packed.rb" => /CHUNKS/,
    "#{SHARED}/sleeping_thread.rb" => /WORKER|thread/i, "#{SHARED}/string_that_grows.rb" => /LOG/, "#{SHARED}/struct_list.rb" => /\$last/,
    "#{SHARED}/symbol_table.rb" => /symbol|Object|handler/, "#{SHARED}/thread_local.rb" => /seen/, "#{SHARED}/unbounded_queue.rb" => /JOBS/,
    "#{__dir__}/leaks/two_registries.rb" => /USERS|BY_NAME/, "#{__dir__}/leaks/controllers.rb" => /Notifications.*@subscribers/,
    "#{__dir__}/leaks/global_hash.rb" => /\$sessions/
  }.freeze
  STEADY = Dir["#{__dir__}/steady/*.rb"].freeze

  # One look after each step of a program that waits in between: no load, and no time, decides.
  STEPS = <<~RUBY
    class Bus; HANDLERS = []; CACHE = {}; def self.on(text) = HANDLERS << -> { text.size }; end
    $stdout.sync = true
    puts "up"
    while (number = gets)
      500.times { |one| Bus.on("event \#{number} \#{one} " * 30); Bus::CACHE[one] = "page \#{number} \#{one} " * 30 }
      puts "done"
    end
  RUBY

  def test_what_grows_at_each_step
    looks = IO.popen([TestHelper::NEUTRAL, RbConfig.ruby, "-I#{LIBRARY}", "-rculet/agent", "-e", STEPS], "r+") do |program|
      program.gets
      Array.new(Culet::Retention::Growth::LOOKS) do |number|
        program.puts(number)
        assert_equal "done\n", program.gets
        Culet::Retention::Growth::Look.new(number, Culet::Retention::Analysis.new(Culet::Retention::Reading.of_process(program.pid), name: "it"))
      end
    end
    growth = Culet::Retention::Growth.new(looks)
    assert_equal ["growth", ["Bus::HANDLERS"]], [growth.verdict, growth.rows.map { |row| row.keeper.name }]
  end

  LEAKS.each do |path, holder|
    define_method(:"test_a_leak_by_#{File.basename(path, ".rb")}") do
      skip_unless_all
      growth = growth_of(path)
      assert_equal "growth", growth["verdict"], summary(growth)
      first = growth["holders"].first
      assert_match(holder, [*first["name"], *first["names"], first["kind"]].join(" "), summary(growth))
      assert_equal "#{path}:#{leak_line(path)}", first.dig("allocated", "place"), first["allocated"].inspect
    end
  end

  STEADY.each do |path|
    define_method(:"test_no_leak_in_#{File.basename(path, ".rb")}") do
      skip_unless_all
      growth = growth_of(path)
      assert_equal "none", growth["verdict"], summary(growth)
    end
  end

  private

  def leak_line(path) = File.readlines(path).index { |line| line.include?("# LEAK") } + 1

  def growth_of(path)
    with_load(path) { |pid| retain(pid, "--growth", "--for", "60s")["growth"] }
  end

  def summary(growth)
    growth["holders"].first(5).map { |one| [one["name"] || one["names"], one["each_bytes"]].inspect }.join("\n")
  end
end
