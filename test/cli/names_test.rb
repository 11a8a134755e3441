# frozen_string_literal: true

require "test_helper"
require "json"
require "pty"
require "culet/cli"
require "culet/system/processes"

# Processes by name: what is found, and what each verb makes of it.
class CliNamesTest < Minitest::Test
  # A master and two workers with titles as Puma sets them. Its own name says nothing of them: it is `ruby`.
  CLUSTER = <<~'RUBY'
    name, app = ARGV
    $0 = "#{name} 6.6.0 (tcp://0.0.0.0:9292) [#{app}]"
    named, report = IO.pipe
    workers = Array.new(2) do |index|
      fork do
        $0 = "#{name}: cluster worker #{index}: #{Process.ppid} [#{app}]"
        report.write("x")
        $stdin.read
      end
    end
    named.read(workers.size)
    puts workers.join(" ")
    $stdout.flush
    $stdin.read
  RUBY

  def setup
    # No process of this machine has it.
    @name = "zuma#{Process.pid}x#{rand(10**6)}"
  end

  def test_a_cluster_is_found_by_its_title
    cluster do |pids|
      reports = JSON.parse(culet("report", @name, "--json").first)["processes"]
      assert_equal pids, reports.map { |one| one["pid"] }
      assert_equal ["#{@name} 6.6.0 (tcp://0.0.0.0:9292) [shop]", "#{@name}: cluster worker 0: #{pids.first} [shop]"], reports.first(2).map { |one|
        one["title"]
      }
      # By the command that its workers have, too, and each process once.
      assert_equal pids, JSON.parse(culet("report", @name, pids.last.to_s, "#{@name}: clus", "--json").first)["processes"].map { |one| one["pid"] }
    end
  end

  def test_the_title_stands_in_the_tables
    cluster do |pids|
      out, = culet("report", pids.last.to_s)
      assert_match(/\A#{@name}: cluster worker 1: #{pids.first} \[shop\] \(process #{pids.last}\): /, out)
      out, = culet("cow", @name, "--writes", "0")
      assert_match(/^#{pids[0]} #{@name} 6\.6\.0 \(tcp:.*\) \[shop\] +parent /, out)
      assert_match(/^#{pids[1]} #{@name}: cluster worker 0: #{pids[0]} \[shop\] +forked by #{pids[0]} /, out)
      assert_equal 3, out.scan(/^\d+ #{@name}/).size
    end
  end

  # A verb that looks at one process takes the master, and says so.
  def test_verbs_that_take_one_process
    cluster do |pids|
      Dir.mktmpdir do |directory|
        { "map" => ["--json"], "doctor" => ["--json"], "snapshot" => ["--json", "--out", "#{directory}/a.snapshot"],
"diff" => [@name, "--json"] }.each do |verb, more|
          out, err, = culet(verb, @name, *more)
          assert_match(
            /^culet: #{@name} is process #{pids[0]} \(#{@name} 6\.6\.0 .*\); its child processes: #{pids[1]} \(.*\), #{pids[2]} \(#{@name}: cluster worker 1: #{pids[0]} \[shop\]\)/, err
          )
          document = JSON.parse(out)
          found = document["pid"] || document.dig("before", "pid")
          assert_equal pids[0], found, verb if verb != "snapshot"
        end
        assert_equal pids[0], Culet::Scope::SnapshotFile.load("#{directory}/a.snapshot").first.pid
      end
      [%w[strings], %w[snapshot --objects]].each do |words|
        _, err, status = culet(*words, @name)
        assert_equal 1, status
        assert_match(/process #{pids[0]} has no agent|agent/, err.lines.last)
      end
      _, err, = culet("requires", "--unused", @name)
      assert_match(/process #{pids[0]} does not record which code runs/, err)
    end
  end

  # A tree is a unit: of the master's own title, and of workers whose titles lack the name.
  def test_the_exact_title_of_a_master_stands_for_its_tree
    cluster do |pids|
      title = "#{@name} 6.6.0 (tcp://0.0.0.0:9292) [shop]"
      assert_equal pids, JSON.parse(culet("report", title, "--json").first)["processes"].map { |one| one["pid"] }
      assert_equal pids, JSON.parse(culet("cow", title, "--json", "--writes", "0").first)["processes"].map { |one| one["pid"] }
      found = Culet::Processes::Search.new("#{@name}: cluster worker 1: #{pids[0]} [shop]").families
      assert_equal [[pids[2]]], found.map { |family| family.members.map(&:pid) }
    end
  end

  # Forked workers belong to their tree whatever they are called; another program that it started does not.
  def test_what_belongs_to_a_tree
    script = <<~RUBY
      $0 = ARGV.first
      named, report = IO.pipe
      forked = fork { $0 = "other words"; report.write("x"); $stdin.read }
      spawn("cat")
      named.read(1)
      puts forked
      $stdout.flush
      $stdin.read
    RUBY
    Open3.popen2(NEUTRAL, RbConfig.ruby, "--disable-gems", "-e", script, "#{@name} app", pgroup: true) do |input, output, process|
      forked = output.gets.to_i
      assert_equal [[process.pid, forked]], Culet::Processes::Search.new(@name).families.map { |family| family.members.map(&:pid) }
    ensure
      end_group(process.pid)
      input.close
    end
  end

  # Several trees are never added up: culet lists them and asks for a number.
  def test_several_trees
    cluster do |first|
      cluster(app: "blog") do |second|
        %w[map doctor snapshot strings limit diff cow].each do |verb|
          out, err, status = culet(verb, *[@name] * (verb == "diff" ? 2 : 1))
          assert_equal ["", 1], [out, status], verb
          assert_choice err, verb, first, second
          assert_includes err.lines.last, "give the number of one, e.g. `culet #{verb} #{first[0]}`"
        end
        [%w[report], %w[profile], %w[requires --unused]].each do |words|
          out, err, status = culet(*words, @name)
          assert_equal ["", 1], [out, status], words.join(" ")
          assert_choice err, words.join(" "), first, second
          assert_includes err.lines.last, "e.g. `culet #{words.join(" ")} #{@name} #{first[0]}`; without the name a number is that process alone"
        end
        # The number of any of its processes chooses a tree.
        [second[0], second[2]].each do |pid|
          assert_equal second, JSON.parse(culet("report", pid.to_s, @name, "--json").first)["processes"].map { |one| one["pid"] }.sort
        end
        seen = JSON.parse(culet("top", @name, "--json").first)["processes"].map { |one| one["pid"] }
        assert_equal (first + second).sort, seen.sort
      end
    end
  end

  def test_a_terminal_is_asked_which_tree
    cluster do |first|
      cluster(app: "blog") do |second|
        command = [NEUTRAL, *culet_command, "limit", @name]
        PTY.spawn(*command) do |output, input, pid|
          seen = +""
          seen << output.readpartial(4096) until seen.include?("the number of one: ")
          input.puts(second[0])
          seen << rest(output)
          assert_predicate Process.wait2(pid).last, :success?
          assert_match(/^ +#{first[0]}  3 processes  \S+ MB PSS  #{@name} 6\.6\.0 .*\[shop\]\r$/, seen)
          assert_includes seen, "#{@name} is process #{second[0]} ("
        end
      end
    end
  end

  # The shell that has the name in its command line, and culet with its words, are not what was meant.
  def test_culet_finds_neither_itself_nor_who_started_it
    out, err, status = run_program("sh", "-c", "true; \"$@\"; exit $?", @name, *culet_command, "report", @name)
    assert_equal ["", 1], [out, status.exitstatus]
    assert_match(/\Aculet: there is no file #{@name}, and no process has "#{@name}" in its title, command or file name\n\z/, err)
    with_program("sh", "-c", "echo up; exec 3<&0; read x; true", @name) { assert_empty Culet::Processes::Search.new(@name).matches }
  end

  def test_another_culet_is_not_found
    cluster do |pids|
      Dir.mktmpdir do |directory|
        File.write("#{directory}/culet", "puts :up; $stdout.flush; sleep")
        with_program(RbConfig.ruby, "#{directory}/culet", "report", @name) { assert_equal pids, Culet::Processes::Search.new(@name).matches.map(&:pid) }
      end
    end
  end

  def test_programs_scripts_and_command_lines
    directory = new_folder
    script = "#{directory}/#{@name}-job.rb"
    File.write(script, WAITING)
    with_program(RbConfig.ruby, "-W0", "-r", "json", script, "--secret=1234") do |pid|
      ["#{@name}-job.rb", "#{@name}-job", @name].each { |name| assert_equal [pid], Culet::Processes::Search.new(name).matches.map(&:pid), name }
      match = Culet::Processes::Search.new(@name).matches.first
      assert_match(/\Aruby\S* #{@name}-job\.rb\z/, match.title)
    end
    # An argument counts where nothing else has the name, and as a whole word.
    with_program(RbConfig.ruby, "-e", WAITING, "--", "x-#{@name}.yml") do |pid|
      assert_equal [pid], Culet::Processes::Search.new(@name).matches.map(&:pid)
      assert_empty Culet::Processes::Search.new(@name[1..]).matches
      assert_empty Culet::Processes::Search.new(@name[0, 2]).matches.select { |match| match.pid == pid }
    end
  end

  # Its title is the process's own to choose, and is printed.
  def test_a_hostile_title
    title = "#{@name} \e[31mred\e]0;x\a\rculet: all is well\u202e\u009b1m\nnext \xFF".b
    with_program(RbConfig.ruby, "-e", "$0 = ARGV.first; #{WAITING}", title) do |pid|
      outs = [culet("report", @name), culet("cow", @name, "--color"), culet("doctor", @name), culet("diff", @name, @name)].map { |out, err,| out + err }
      outs.each do |text|
        assert_includes text, @name
        refute_match(/\e\[31|\e\]|\a|\r|\u202e|\u009b|^next/, text)
        assert_predicate text, :valid_encoding?
      end
      assert_match(/\A#{pid} \(#{@name} \?\[31mred\?\]0;x\?\?culet: all/, Culet::Processes::Search.new(@name).matches.first.to_s)
    end
  end

  # Only what may be read is of use; where nothing may, the reason is told.
  def test_a_process_of_another_user
    skip "only root can start a process of another user" unless Process.uid.zero?
    with_program(RbConfig.ruby, "-e", "$0 = '#{@name} of root'; #{WAITING}") do |pid|
      script = "Process::Sys.setgid(65534); Process::Sys.setuid(65534); require 'culet/cli'; exit Culet::CLI.run(['report', '#{@name}'])"
      out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-r#{ROOT}/bin/gems.rb", "-e", script)
      assert_equal ["", 1], [out, status.exitstatus]
      assert_match(/\Aculet: process #{pid} belongs to root; run culet as that user or as root\n\z/, err.lines.last)
    end
  end

  def test_a_file_of_that_name_comes_first
    directory = new_folder
    cluster do
      File.write("#{directory}/#{@name}", "no snapshot")
      _, err, status = run_culet("report", @name, chdir: directory)
      assert_equal 1, status.exitstatus
      assert_match(/\Aculet: #{@name} is not a snapshot/, err)
    end
  end

  # In its folder a script is named as the process that runs it.
  def test_a_script_of_that_name_is_the_process
    directory = new_folder
    script = "#{@name}.rb"
    File.write("#{directory}/#{script}", WAITING)
    with_program(RbConfig.ruby, "#{directory}/#{script}") do |pid|
      out, err, status = run_culet("report", script, "--json", chdir: directory)
      assert_equal 0, status.exitstatus, err
      assert_equal pid, JSON.parse(out)["pid"]
    end
  end

  # A server is named, and not meant to be started: nothing is said of a command after --.
  def test_several_trees_of_an_executable
    directory = new_folder
    File.write("#{directory}/#{@name}", "", perm: 0o755)
    cluster do |first|
      cluster(app: "blog") do |second|
        _, err, status = run_culet("cow", @name, env: { "PATH" => "#{directory}:#{ENV.fetch("PATH")}" })
        assert_equal 1, status.exitstatus
        assert_choice err, "cow", first, second
        refute_includes err, " -- "
      end
    end
  end

  # A process in a systemd unit: its control group is in a folder of that name, which only root can make.
  def test_units
    text = "0::/system.slice/redmine@1.service/x.scope\n"
    identity = Culet::Processes::Identity.new(Process.pid)
    identity.define_singleton_method(:read) { |name| name == "cgroup" ? text : super(name) }
    assert_equal %w[redmine@1 redmine@1.service x x.service], identity.units
    assert_includes identity.names, "redmine@1"
  end

  private

  # Each line of the list has a root, the number of its processes, their PSS as the kernel tells it, and its title.
  def assert_choice(text, verb, *trees)
    assert_match(/\Aculet: "#{@name}" matches 2 process trees:\n/, text, verb)
    trees.zip(%w[shop blog]).each do |pids, app|
      line = text[/^ +#{pids[0]}  3 processes  (\d+(?:\.\d+)?) MB PSS  #{@name} 6\.6\.0 .*\[#{app}\]$/, 1]
      pss = pids.sum { |pid| Culet::Processes::Memory.pss_bytes(pid) }
      assert_in_delta pss / 1e6, line.to_f, pss / 1e6 * 0.05, text
    end
  end

  # A terminal whose program has ended ends by an error.
  def rest(output)
    text = +""
    loop { text << output.readpartial(4096) }
  rescue Errno::EIO, EOFError
    text
  end

  # Yields the numbers of the master and its workers.
  def cluster(app: "shop")
    Open3.popen2(NEUTRAL, RbConfig.ruby, "--disable-gems", "-e", CLUSTER, @name, app, pgroup: true) do |input, output, process|
      assert output.wait_readable(PATIENCE_SECONDS)
      workers = output.gets.split.map(&:to_i)
      yield [process.pid, *workers]
    ensure
      end_group(process.pid)
      input.close
    end
  end
end
