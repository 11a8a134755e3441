# frozen_string_literal: true

require_relative "retain_helper"
require_relative "documents"

# What the verb makes of answers that no agent of ours gives, and of processes that end.
class RetainAnswersTest < Minitest::Test
  include RetainHelper
  include RetentionDocuments

  FAKE = File.expand_path("../agent/fake_agent.rb", __dir__)

  def test_damaged_answers_are_one_sentence
    whole = JSON.generate(document)
    { "empty" => "", "no JSON" => "hello", "cut" => whole[0, whole.size / 2], "a list" => "[]", "deep" => "[" * 100_000, "bytes" => "\xff" * 1_000,
      "a number" => %({"version":#{"1" * 100_000}}), "wrong sums" => JSON.generate(document.merge("total_bytes" => 1)),
      "samples" => JSON.generate(document.merge("samples" => { "started_ns" => 1, "generation" => 0, "sites" => [["o", 1, 2, 3, 4, [[0, 1, 2, [[{}]]]]]] })),
      "another version" => JSON.generate(document.merge("version" => 9)) }.each do |name, answer|
      with_fake(answer) { |pid| assert_refused(/process #{pid}/, pid, told: name) }
    end
  end

  def test_an_answer_of_ours_is_shown
    with_fake(JSON.generate(document)) do |pid|
      assert_match(/^1\. 400 kB .* constant Shop::CACHE/, report(pid))
      assert_equal "none", retain(pid, "--growth", "--for", "1s")["growth"]["verdict"]
    end
  end

  def test_growth_that_an_agent_reports
    answers = Array.new(7) { |at| JSON.generate(document(holders: [holder(0, "LEAK", 100_000 * (at + 1))], sets: [])) }
    with_fake(*answers) do |pid|
      assert_match(/: something keeps more and more\n.*\n\n1\. \+.* per minute, now 700 kB: constant LEAK/, report(pid, "--growth", "--for", "1s"))
    end
  end

  # The looks until then are reported.
  def test_a_process_that_ends_meanwhile
    with_fake(JSON.generate(document), JSON.generate(document), nil) do |pid|
      out, err = assert_culet_success("retain", pid, "--growth", "--for", "1s", env: TestHelper::NEUTRAL)
      assert_match(/: too few looks to judge growth$/, out)
      assert_match(/\Aculet: process #{pid} .*; the report has the 2 looks until then\n\z/, err)
    end
    with_fake(nil) { |pid| assert_refused(/process #{pid} (?:has )?ended/, pid) }
  end

  def test_ctrl_c_ends_growth_with_a_report
    with_fake(JSON.generate(document)) do |pid|
      with_started(*culet_command, "retain", pid.to_s, "--growth", "--for", "1h", env: TestHelper::NEUTRAL, err: %i[child out]) do |culet, output|
        wait_until_asked(pid)
        Process.kill(:INT, culet)
        text = output.read
        assert_equal 130, await_end(culet).exitstatus, text
        assert_match(/: too few looks to judge growth$/, text)
      end
    end
  end

  # The analysis is C code without the GVL. The rest of the dump is not read.
  def test_ctrl_c_ends_the_reading_of_a_dump
    program = 'Culet::Retention.analyse_dump($stdin.fileno, $stdout.fileno, [false, false, false, "", 0, 600.0, 4 << 30])'
    dump, writer = IO.pipe
    culet = spawn(TestHelper::NEUTRAL, RbConfig.ruby, "-I#{ROOT}/lib", "-rculet", "-e", program, in: dump, out: File::NULL, err: File::NULL)
    dump.close
    line = %({"address":"0x%x", "type":"OBJECT", "memsize":40}\n)
    assert_raises(Errno::EPIPE) do
      2_000_000.times do |at|
        writer << format(line, 40 * (at + 1))
        Process.kill(:INT, culet) if at == 10_000
      end
    end
    assert_equal Signal.list["INT"], await_end(culet).termsig
  ensure
    writer&.close
  end

  private

  # Until the fake agent has answered; from before its question on, culet catches the signal.
  def wait_until_asked(pid)
    path = "#{File.read("/proc/#{pid}/cmdline").split("\0").last}.asked"
    assert_settles("culet asks") { File.exist?(path) }
  end

  # @param answers [Array<String, nil>] nil: it ends
  def with_fake(*answers, &block)
    Dir.mktmpdir do |folder|
      words = answers.each_with_index.map do |answer, at|
        next "-" unless answer

        File.join(folder, "#{at}.json").tap { |path| File.binwrite(path, answer) }
      end
      with_program(RbConfig.ruby, FAKE, "off", *words, env: TestHelper::NEUTRAL, &block)
    end
  end
end
