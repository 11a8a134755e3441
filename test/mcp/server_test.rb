# frozen_string_literal: true

require "json"
require "open3"
require_relative "../test_helper"

# `culet mcp` and the client of the protocol's authors.
class McpServerTest < Minitest::Test
  SDK = "@modelcontextprotocol/sdk"
  VERSION = "1.32.2"
  SERVER = [RbConfig.ruby, "-I#{ROOT}/lib", "-r#{ROOT}/bin/gems.rb", "#{ROOT}/exe/culet", "mcp"].freeze
  KEEP = "$kept = Array.new(30_000) { |i| \"secret \#{i}\" * 3 }\nputs :up; $stdout.flush; sleep"
  NAMES = %w[processes explain report profile retain diff].freeze
  MOST_BYTES = 8_000

  def test_each_tool_on_a_real_process
    with_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rculet/agent", "-e", KEEP, env: NEUTRAL) do |pid|
      one = { process: pid.to_s }
      found = client([["processes", {}], ["explain", { **one, seconds: 2 }], ["report", one], ["retain", one], ["diff", { **one, seconds: 1 }], ["profile", one]])
      assert_equal "culet", found["server"]["name"]
      assert_equal NAMES, found["tools"].map { |tool| tool["name"] }
      assert(found["tools"].all? { |tool| tool["annotations"]["readOnlyHint"] && tool["inputSchema"]["type"] == "object" })
      assert_empty found["errors"]
      assert_empty found["stderr"]
      read = found["calls"]
      assert(read.none? { |answer| answer["isError"] }, read.to_s)
      assert_includes text(read[0]), "\"pid\":#{pid}"
      assert_includes JSON.parse(text(read[1])).keys, "verdict"
      assert_equal pid, JSON.parse(text(read[2]))["pid"]
      assert_includes text(read[3]), "$kept"
      refute_includes text(read[3]), "secret 1"
      found["calls"].each { |answer| assert_operator text(answer).bytesize, :<=, MOST_BYTES }
      assert_match(/Ruby objects alone/, JSON.parse(text(read[5]))["notes"].join)
    end
  end

  def test_what_a_process_must_load_is_said
    with_program(RbConfig.ruby, "-e", KEEP, env: NEUTRAL) do |pid|
      profile, retain = client([["profile", { process: pid.to_s }], ["retain", { process: pid.to_s }]])["calls"]
      assert_equal [true, true], [profile, retain].map { |answer| answer["isError"] }
      assert_match(/culet lib profile/, text(profile))
      assert_match(/agent/, text(retain))
    end
  end

  def test_bad_input_is_an_error_of_the_tool
    found = client([["report", { process: "999999999" }], ["report", {}], ["report", { process: "1", other: "2" }], ["explain", { process: "--out=x" }], ["report", { process: "1 2" }],
                    ["retain", { process: "/etc/passwd" }], ["explain", { process: "1", seconds: 0 }]])
    found["calls"].each do |answer|
      assert answer["isError"] || answer["thrown"], answer.to_s
      refute_match(/\.rb:\d+/, answer.to_s)
    end
    assert_match(/999999999/, text(found["calls"].first))
  end

  # It is the root of its tree; of several with a name the caller takes a number.
  def test_a_process_by_its_name
    name = "culet-mcp-#{Process.pid}"
    program = [RbConfig.ruby, "-e", "$0 = '#{name}'; puts :up; $stdout.flush; sleep"]
    with_program(*program, env: NEUTRAL) do |pid|
      named, absent = client([["report", { process: name }], ["report", { process: "no-#{name}" }]])["calls"]
      assert_equal pid, JSON.parse(text(named))["pid"]
      assert_equal [true, true], [absent["isError"], text(absent).start_with?("no process has \"no-#{name}\"")]
      with_program(*program, env: NEUTRAL) do
        several = client([["report", { process: name }]])["calls"].first
        assert_match(/give the number of one, e\.g\. `culet report \d+`\z/, text(several))
      end
    end
  end

  def test_a_ping_and_a_cancellation_during_a_long_watch
    with_program(RbConfig.ruby, "-e", KEEP, env: NEUTRAL) do |pid|
      found = client([["explain", { process: pid.to_s, seconds: 600 }, true], ["report", { process: pid.to_s }]])
      assert_match(/enough/, found["calls"].first["thrown"])
      refute found["calls"].last["isError"], found["calls"].last.to_s
    end
  end

  def test_closed_stdin_ends_it
    out, err, status = Open3.capture3(NEUTRAL, *SERVER, stdin_data: "")
    assert_equal ["", "", 0], [out, err, status.exitstatus]
  end

  def test_ctrl_c_ends_it
    Open3.popen3(NEUTRAL, *SERVER) do |input, out, err, process|
      input.puts('{"jsonrpc":"2.0","id":1,"method":"ping"}')
      assert_equal 1, JSON.parse(out.gets)["id"]
      Process.kill("INT", process.pid)
      assert_equal 130, process.value.exitstatus
      assert_equal ["", ""], [out.read, err.read]
    end
  end

  private

  def text(answer) = answer.fetch("content").first.fetch("text")

  def client(calls)
    out, err, status = Open3.capture3(NEUTRAL.merge("CULET_NODE_MODULES" => modules), "node", "#{__dir__}/client.mjs", JSON.generate(calls), *SERVER)
    assert_predicate status, :success?, err
    JSON.parse(out)
  rescue Errno::ENOENT
    skip "there is no node; install it with `apt-get install nodejs npm`"
  end

  # With its dependencies, kept like the packages of NpmPackage.
  def modules
    folder = File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "culet", "npm", "sdk-#{VERSION}")
    return folder if File.directory?("#{folder}/node_modules/#{SDK}")

    FileUtils.mkdir_p(folder)
    out, status = Open3.capture2e(NEUTRAL, "npm", "install", "--silent", "--no-audit", "--ignore-scripts", "--prefix", folder, "#{SDK}@#{VERSION}")
    status.success? ? folder : skip("#{SDK} could not be installed: #{out.lines.last}")
  end
end
