# frozen_string_literal: true

require "test_helper"
require "json"

# What the doctor cannot read it calls unknown. Each test takes something away in a mount namespace of its own, which ends
# with the command.
class DoctorUnknownTest < Minitest::Test
  def test_nothing_is_unknown_that_can_be_read
    refute_includes unknown(diagnose("true")), "overcommit"
    refute_includes unknown(diagnose("true")), "huge pages" if File.readable?("/sys/kernel/mm/transparent_hugepage/enabled")
  end

  def test_without_sys
    report = diagnose("{ umount -R /sys || [ ! -e /sys/kernel ]; }")
    assert_includes text(report, "huge pages"), "transparent huge pages: unknown, because /sys/kernel/mm/transparent_hugepage/enabled cannot be read"
    assert_includes unknown(report), "huge pages"
    # Without control groups in the kernel there is no limit, whatever is mounted.
    assert_equal %w[cpu memory].map { |name| "#{name} limit" }, unknown(report).grep(/limit/).sort if File.read("/proc/self/cgroup").match?(/:(?:memory)?:/)
  end

  def test_without_the_file_system_of_control_groups
    report = diagnose("mount -t tmpfs none /sys/fs/cgroup")
    skip "this kernel has no control groups" unless File.read("/proc/self/cgroup").match?(/:(?:memory)?:/)
    assert_match(/limit on memory: unknown, because the control groups of the process .* cannot be read/, text(report, "memory limit"))
    refute_includes unknown(report), "huge pages"
  end

  def test_without_the_kernel_s_settings
    report = diagnose("mount -t tmpfs none /proc/sys")
    assert_equal ["overcommit", "ptrace scope"], unknown(report).sort
  end

  # A folder with files, but none of the file that is asked for: the kernel has no such thing.
  def test_what_the_kernel_does_not_have_is_not_unknown
    report = diagnose("mount -t tmpfs none /sys/kernel/mm && mkdir /sys/kernel/mm/ksm")
    assert_equal "the kernel has no transparent huge pages", text(report, "huge pages")
  end

  def test_a_comparison_calls_it_unknown_too
    script = "require 'culet/system/kernel_file'; p Culet::KernelFile.huge_pages"
    assert_equal "nil\n", inside("{ umount -R /sys || [ ! -e /sys/kernel ]; }", RbConfig.ruby, "--disable-gems", "-I#{TestHelper::ROOT}/lib", "-e", script)
  end

  # The program's file system is gone while it runs: what the program defines is unknown.
  def test_a_program_that_cannot_be_opened
    folder = new_folder
    script = "mount -t tmpfs none #{folder} && cp \"$(command -v sleep)\" #{folder}/program && #{folder}/program 600 & pid=$!; " \
             "until [ \"$(readlink /proc/$pid/exe)\" = #{folder}/program ]; do sleep 0.05; done; umount -l #{folder}; " \
             "\"$@\" $pid; status=$?; kill $pid; exit $status"
    report = JSON.parse(inside("true", "sh", "-c", script, "sh", *culet_command, "doctor", "--json"))
    assert_match(/Ruby version: unknown, because .*program cannot be opened/, text(report, "ruby"))
  end

  # Of a preloaded link, the loader maps what it leads to, by a name that is a file in that process's mounts alone.
  def test_a_library_preloaded_by_a_link_that_leads_into_another_mount
    directory = new_folder
    library = File.join(TestHelper::ROOT, "allocator/build/libculet.so")
    File.symlink("within/library.so", "#{directory}/link.so")
    Dir.mkdir("#{directory}/within")
    ready, done = %w[ready done].map { |name| "#{directory}/#{name}" }
    change = "mount -t tmpfs none #{directory}/within && cp #{library} #{directory}/within/library.so"
    waiting = "File.write('#{ready}.new', $$); File.rename('#{ready}.new', '#{ready}'); sleep 0.05 until File.exist?('#{done}')"
    program = Thread.new { inside(change, "sh", "-c", "LD_PRELOAD=#{directory}/link.so exec \"$@\"", "sh", RbConfig.ruby, "-e", waiting) }
    program.report_on_exception = false
    sleep(0.05) until File.exist?(ready) || !program.alive?
    out, err = run_culet("doctor", "--json", File.read(ready), env: NEUTRAL) if File.exist?(ready)
    File.write(done, "")
    program.value
    assert_equal "", err
    assert_equal "culet", JSON.parse(out).dig("allocator", "name")
  end

  private

  # @return [Hash] what the doctor says of a fresh Ruby, after a change to what is mounted
  def diagnose(change) = JSON.parse(inside(change, *culet_command, "doctor", "--json"))

  # @param change [String] a shell command
  # @return [String] standard output of the command, run in a mount namespace where the change was made
  def inside(change, *command)
    program = [%w[unshare --mount], %w[unshare --mount --map-root-user]].find { |words| run_program(*words, "true", env: NEUTRAL).last.success? }
    skip "no mount namespace can be made here" unless program

    out, err, status = run_program(*program, "sh", "-c", "#{change} && exec \"$@\"", "sh", *command, env: NEUTRAL)
    skip "not allowed here: #{err.lines.first}" if err.match?(/\A(?:u?mount): .*(?:permission denied|must be superuser)/i)
    assert_predicate status, :success?, err
    out
  end

  def text(report, topic) = report["findings"].find { |one| one["topic"] == topic }&.fetch("text") || flunk("no finding on #{topic}")

  # @return [Array<String>] topics of which something is unknown
  def unknown(report) = report["findings"].select { |one| one["text"].include?(": unknown, because ") && one["verdict"] == "note" }.map { |one| one["topic"] }
end
