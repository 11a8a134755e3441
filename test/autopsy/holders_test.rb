# frozen_string_literal: true

require_relative "box_helper"
require_relative "cgroup_helper"
require "culet/runtime/blackbox/settings"

# What kept the memory of a process near its limit: the looks of its black box.
class AutopsyHoldersTest < Minitest::Test
  include TestHelper
  include BoxHelper
  include CgroupHelper

  LIMIT_BYTES = 256 << 20
  # Grows by so many megabytes for each line it reads, at once, so that no look falls into it; a thread runs all the time, so
  # that Ruby does what it was asked for.
  PROGRAM = <<~RUBY
    class Shop; PAGES = {}; end
    ROUTES = Array.new(20_000) { |number| "route \#{number} " * 10 }
    Thread.new { loop { sleep 0.01 } }
    $stdout.sync = true
    puts Process.pid
    while (megabytes = gets)
      Shop::PAGES[Shop::PAGES.size] = "x" * (1_000_000 * megabytes.to_i)
      puts "done"
    end
  RUBY

  def test_the_growing_holder_of_a_killed_process
    with_cgroup(LIMIT_BYTES) do |group|
      with_box(group, "3") do |program, path|
        grow(program, 150)
        # A look may fall between the string and its place in the constant: then the stack has it.
        first = look(path) { |found| found.holders.first.kind == "constant" }
        assert_equal ["constant", "Shop::PAGES", nil], first.holders.first.to_h.values_at(:kind, :name, :growth_bytes)
        grow(program, 40)
        second = look(path, &:seconds)
        assert_in_delta 40_000_000, second.holders.first.growth_bytes, 2_000_000
        Process.kill(:KILL, program.pid)
        Process.wait(program.pid)
        assert_reported(path)
      end
    end
  end

  def test_no_looks
    with_cgroup(LIMIT_BYTES) do |group|
      with_box(group, "0") do |program, path|
        grow(program, 150)
        readings = Culet::Autopsy::Box.load(path).readings.size
        sleep 0.05 until Culet::Autopsy::Box.load(path).readings.size > readings + 2
        assert_nil Culet::Autopsy::Box.load(path).look
      end
    end
  end

  def test_the_setting
    assert_equal [60, 0, 300], [nil, "0", "300"].map { |text| Culet::BlackBox::Settings.new("boxes", text).look_seconds }
    assert_equal [File.expand_path("boxes"), 60], Culet::BlackBox::Settings.new("boxes", "\xFF").then { |wrong| [wrong.folder, wrong.look_seconds] }
    wrong = Culet::BlackBox::Settings.new("boxes", "often")
    assert_equal [60, File.expand_path("boxes")], [wrong.look_seconds, wrong.folder]
    assert_match(/\ACULET_BLACKBOX_LOOKS takes seconds/, wrong.problem)
  end

  private

  # @yieldparam program [IO]
  # @yieldparam path [String] of its black box
  def with_box(group, seconds)
    Dir.mktmpdir do |folder|
      environment = TestHelper::NEUTRAL.merge("CULET_BLACKBOX" => folder, "CULET_BLACKBOX_LOOKS" => seconds)
      IO.popen([environment, *in_cgroup(group, RbConfig.ruby, "-W0", "-I#{File.join(TestHelper::ROOT, "lib")}", "-rculet/blackbox", "-e", PROGRAM)], "r+") do |program|
        program.gets
        yield program, Dir["#{folder}/*.blackbox"].first
      end
    end
  end

  def grow(program, megabytes)
    program.puts(megabytes)
    assert_equal "done\n", program.gets
  end

  # @return [Culet::Autopsy::Box::Look] the first one for which the block holds
  def look(path)
    assert_settles("there is a look") { Culet::Autopsy::Box.load(path).look&.then { |found| found if yield(found) } }
  end

  def assert_reported(path)
    out, = assert_culet_success("autopsy", "--json", path)
    retained = JSON.parse(out)["retained"]
    assert_equal %w[constant Shop::PAGES], retained["holders"].first.values_at("kind", "name")
    assert_operator retained["growth_bytes"], :>, 38_000_000
    out, = run_culet("autopsy", path)
    assert_match(/^constant Shop::PAGES .* \+4\d\.\d MB$/, out)
  end
end
