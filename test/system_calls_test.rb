# frozen_string_literal: true

require "agent/agent_helper"
require "metrics/metrics_helper"
require_relative "../boot/lib/report/unused"

# System calls that culet makes in a program. A service may be killed for a call that its filter does not permit, so all of
# them must be in the sets that services have.
class SystemCallsTest < Minitest::Test
  include AgentHelper
  include MetricsHelper

  FOLDER = File.join(ROOT, "test/system_calls")
  LIBRARY = File.join(ROOT, "allocator/build/libculet.so")
  EXTENSION = File.join(ROOT, "lib/culet/culet.so")

  # Sets of systemd that every service has, and that of servers.
  SETS = %w[@default @basic-io @file-system @io-event @ipc @process @signal @timer @network-io].freeze
  # What Ruby itself calls beyond these, at its start or for its methods; all of it in @system-service.
  RUBY = %w[flock ioctl madvise mremap sched_getattr sysinfo uname].freeze
  # Calls that culet leaves out under a filter (ext/culet/common/filter.h), and functions of libc that make other calls.
  LIBC = %w[readdir syscall].freeze
  UNFILTERED = (%w[sched_setattr setpriority] + LIBC).freeze
  # Calls that culet does without once a container's filter has refused them.
  OPTIONAL = %w[process_madvise].freeze

  def test_calls_that_are_made_are_permitted
    skip "strace is not installed" unless Culet::Executables.find("strace")
    folder = new_folder
    file = "#{folder}/calls"
    run_all_parts(folder, "strace", "-f", "-c", "-qq", "-o", file)
    made = File.readlines(file).filter_map { |line| line[/\A\s*[\d.]+\s.*\s(\w+)\n\z/, 1] } - %w[total]
    assert_includes made, "membarrier", File.read(file)
    assert_empty made - permitted - UNFILTERED
    assert_empty made - containers - OPTIONAL
  end

  def test_a_program_lives_under_a_filter_that_kills
    Dir.mktmpdir { |folder| run_all_parts(folder, launcher(folder)) }
  end

  def test_the_filter_kills
    folder = new_folder
    code = "Process.setpriority(Process::PRIO_PROCESS, 0, 5)"
    _, _, status = run_program(launcher(folder), RbConfig.ruby, "--disable-gems", "-e", code, env: NEUTRAL)
    assert_equal Signal.list.fetch("SYS"), status.termsig
  end

  def test_calls_in_the_code_are_permitted
    assert_empty %w[membarrier madvise futex prctl] - called
    assert_empty called - permitted - UNFILTERED
    assert_empty called - containers - OPTIONAL - LIBC
  end

  # The sets of this machine's systemd, of the calls that it knows.
  def test_systemd_permits_them
    skip "systemd is not installed" unless Culet::Executables.find("systemd-analyze")
    out, = run_program("systemd-analyze", "syscall-filter")
    here = out.split(/^(?=@)/).to_h { |text| [text[/\A\S*/], text.scan(/^ {4}([@\w]\S*)$/).flatten] }
    skip "this systemd lists no sets" unless here.key?("@known")
    assert_empty (called & here["@known"]) - here.values_at(*SETS, "@system-service").flatten - UNFILTERED
  end

  private

  # Runs the program, asks its agent, and lets it end.
  def run_all_parts(folder, *launcher)
    env = NEUTRAL.merge("LD_PRELOAD" => LIBRARY, "CULET_LIMIT" => "8G", "CULET_BLACKBOX" => "#{folder}/boxes", "CULET_METRICS" => free_port.to_s)
    words = env.map { |name, value| value ? "#{name}=#{value}" : "-u#{name}" }.sort_by { |word| word.start_with?("-u") ? 0 : 1 }
    command = [*launcher, "env", *words, RbConfig.ruby, "-w", "-I#{ROOT}/lib", "#{FOLDER}/program.rb"]
    Open3.popen3(*command, pgroup: true) do |input, output, error, process|
      messages = Thread.new { error.read }
      first = output.wait_readable(PATIENCE_SECONDS) && output.gets
      flunk "#{launcher.first}: #{input.close && messages.value} #{process.value}" unless first
      ask_all(Integer(first[/\Aup (\d+)/, 1]))
      input.close
      assert_match(/\Adone \d+\n\z/, output.read)
      assert_equal ["", true], [messages.value, process.value.success?]
    ensure
      end_group(process.pid) if process.alive?
    end
  end

  def ask_all(pid)
    assert_operator beside_strace { ask(pid) }.fact("objects")["count"], :>, 0
    refute_nil beside_strace { Culet::Boot::UnusedInquiry.new(pid).call }
  end

  # strace stops the process at each call, for a moment in which it cannot be asked.
  def beside_strace
    attempts ||= 0
    yield
  rescue Culet::Error => e
    raise unless e.message.include?("is stopped") && (attempts += 1) < 1000

    sleep 0.01
    retry
  end

  # @return [String] the program that runs others under a filter of the sets
  def launcher(folder)
    File.write("#{folder}/permitted.h", permitted.map { |name| "#ifdef SYS_#{name}\nCALL(SYS_#{name})\n#endif\n" }.join)
    TestHelper.build("-DPERMITTED=\"#{folder}/permitted.h\"", "#{FOLDER}/launcher.c")
  end

  # @return [Array<String>] numbers in the sources, and functions that are named like system calls in what the libraries import
  def called
    sources = Dir["#{ROOT}/{allocator/src,sampler,ext/culet}/**/*.{c,h}"].reject { |path| path.include?("/test/") }
    numbers = sources.flat_map { |path| File.read(path).scan(/\bSYS_(\w+)/).flatten }
    numbers | ([LIBRARY, EXTENSION].flat_map { |path| imports(path) } & (sets.values.flatten | containers))
  end

  def permitted = sets.values_at(*SETS).flatten | RUBY

  # @return [Hash{String => Array<String>}] names by set
  def sets = @sets ||= File.readlines("#{FOLDER}/systemd.txt").grep_v(/\A#/).map(&:split).to_h { |set, *names| [set, names] }

  def containers = @containers ||= File.readlines("#{FOLDER}/containers.txt", chomp: true).grep_v(/\A#/)

  def imports(path)
    out, = assert_success("nm", "-D", "--undefined-only", path)
    out.scan(/^\s+\w (\w+)/).flatten
  end
end
