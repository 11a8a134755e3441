# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "culet/tools/profile/live"
require "json"

# Programs whose memory is known, and reports on them.
module ProfileVerbHelper
  LIBRARY = File.join(TestHelper::ROOT, "lib")
  # Keeps 1,000 strings of 10 kB, allocated in one line.
  KEEPS = <<~RUBY
    KEPT = []
    def keep(count)
      count.times { KEPT << ("x" * 10_000) }
    end
  RUBY
  KEEPING_LINE = 3
  KEPT_BYTES = 10_000_000
  # Small, so that a short program has many samples.
  SAMPLE = 16_384

  # @return [String] where a file with KEEPS and more code is
  def program(folder, code)
    path = File.join(folder, "app.rb")
    File.write(path, KEEPS + code)
    path
  end

  # @return [Hash{String => String}] of a process on culet's allocator
  def on_culet = TestHelper::NEUTRAL.merge(Culet::Allocators.parse("culet").environment({}))

  # @param words [Array<String>] arguments
  # @param env [Hash] of a command that is run
  # @return [Hash] what `culet profile --json` printed
  def profile(*words, env: TestHelper::NEUTRAL)
    all = ["profile", "--json", *words]
    out, @err = words.include?("--") ? assert_culet_success(*all, env: env) : assert_culet(*all)
    JSON.parse(out)
  end

  # The largest line is the one that keeps the strings, and the true size is plausible.
  def assert_kept(document, bytes: KEPT_BYTES)
    row = rows(document).first
    assert_equal "app.rb:#{KEEPING_LINE}", File.basename(row["name"])
    assert_operator row["low_bytes"], :<=, row["bytes"]
    assert_operator row["bytes"], :<=, row["high_bytes"]
    # Four times the interval's half: once in 15,000 runs an estimate is farther off.
    assert_in_delta bytes, row["bytes"], 2 * (row["high_bytes"] - row["low_bytes"])
  end

  # @return [Array<Hash>] of a report with --by
  def rows(document) = document.fetch("rows")

  # One sentence and the status.
  def assert_refused(sentence, *words, status: 1)
    # What runs a command needs a process of its own.
    out, err, ended = words.include?("--") && status != 2 ? run_culet("profile", *words, env: TestHelper::NEUTRAL) : culet("profile", *words)
    assert_equal ["", status], [out, ended.is_a?(Integer) ? ended : ended.exitstatus], err
    assert_equal 1, err.lines.size, err
    assert_match(/\Aculet: .*#{sentence.source}/, err)
  end
end
