# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/allocators"
require "culet/system/ruby_options"

# Programs with the agent, and what `culet retain` says of them.
module RetainHelper
  LIBRARY = File.join(TestHelper::ROOT, "lib")
  LOAD = File.join(__dir__, "load.rb")
  # Keeps some megabytes below a constant.
  KEEPS = <<~RUBY
    module Shop
      Page = Struct.new(:body)
      CACHE = {}
    end
    5_000.times { |number| Shop::CACHE["GET /a/\#{number}"] = Shop::Page.new("body \#{number} " * 40) }
  RUBY
  WAITING = "GC.start; puts :up; $stdout.flush; sleep"

  # Yields the pid of a Ruby program with the agent.
  #
  # @param options [Array<String>] of Ruby
  def with_agent(code, *options, env: TestHelper::NEUTRAL, &block)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "app.rb")
      File.write(path, code)
      with_program(RbConfig.ruby, "-W0", "-I#{LIBRARY}", "-rculet/agent", *options, path, env: env, &block)
    end
  end

  # Yields the pid of a program of leaks or steady under load, whose profile is on.
  def with_load(path, &block)
    env = TestHelper::NEUTRAL.merge(Culet::Allocators.parse("culet").environment({})).merge("CULET_PROFILE" => "32k")
    with_program(RbConfig.ruby, "-W0", "-I#{LIBRARY}", "-rculet/profile", LOAD, path, env: env, &block)
  end

  # @return [Hash] what `culet retain --json` printed
  def retain(*words)
    out, @err = assert_culet("retain", "--json", *words)
    JSON.parse(out)
  end

  # @return [String] what `culet retain` printed
  def report(*words)
    out, @err = assert_culet("retain", *words)
    out
  end

  # One sentence and the status.
  def assert_refused(sentence, *words, status: 1, env: TestHelper::NEUTRAL, told: nil)
    # What is refused by its words alone needs no process of its own.
    out, err, ended = status == 2 ? culet("retain", *words) : run_culet("retain", *words, env: env)
    assert_equal ["", status], [out, ended.is_a?(Integer) ? ended : ended.exitstatus], [told, err].compact.join(": ")
    assert_equal 1, err.lines.size, [told, err].compact.join(": ")
    assert_match(/\Aculet: .*#{sentence.source}/, err)
  end

  # @return [Hash] the row with the name
  def row(document, name) = document["holders"].find { |one| one["name"].include?(name) } || flunk("no holder #{name}: #{document["holders"].map { |one| one["name"] }}")

  # Writes a dump of a program.
  def dump(folder, code)
    path = File.join(folder, "heap.json")
    source = "#{code}\nGC.start\nFile.open(ARGV.first, 'w') { |file| ObjectSpace.dump_all(output: file) }"
    assert_success(RbConfig.ruby, "-W0", "-robjspace", "-e", source, path, env: TestHelper::NEUTRAL)
    path
  end
end
