# frozen_string_literal: true

require "test_helper"

# The scripts of the checkout: bin/setup, bin/culet, bin/test, bin/demo, bin/site, .ci/run.
class SetupTest < Minitest::Test
  SCRIPTS = %w[bin/setup bin/culet bin/test bin/demo bin/site .ci/run].freeze
  # Without optimisation, as what the compiler makes of the sources does not matter here.
  BUILD = NEUTRAL.merge("CFLAGS" => "-O0").freeze
  # For what compiles, on a busy machine.
  BUILD_PATIENCE_SECONDS = 900

  def test_scripts_are_executable_plain_sh
    SCRIPTS.each do |script|
      path = File.join(ROOT, script)
      assert File.executable?(path), script
      assert_equal "#!/bin/sh\n", File.open(path, &:gets)
      assert_success("sh", "-n", path)
    end
  end

  def test_setup_says_nothing_when_nothing_is_missing
    run_program("#{ROOT}/bin/setup", "build", chdir: "/", patience: BUILD_PATIENCE_SECONDS)
    out, err = assert_success("#{ROOT}/bin/setup", "build", chdir: "/")
    assert_equal ["", ""], [out, err]
  end

  def test_setup_refuses_an_unknown_word
    _, err, status = run_program("#{ROOT}/bin/setup", "everything")
    assert_equal 2, status.exitstatus
    assert_match(%r{usage: bin/setup}, err)
  end

  def test_programs_are_found_behind_a_folder_whose_name_is_not_utf8
    out, = assert_success(RbConfig.ruby, "-r#{ROOT}/ext/native_build", "-e", 'p NativeBuild.program("sh")',
                          env: NEUTRAL.merge("LC_ALL" => "C.UTF-8", "PATH" => "/bin-\xff:#{ENV.fetch("PATH")}"))
    assert_equal "true\n", out
  end

  def test_the_command_line_works_from_any_directory
    directory = new_folder
    out, = assert_success("#{ROOT}/bin/culet", "lib", chdir: directory)
    assert_equal "#{ROOT}/allocator/build/libculet.so\n", out
  end

  def test_the_command_line_leaves_no_trace_of_the_checkout_in_the_commands_environment
    env = NEUTRAL.merge("KEPT" => "1")
    before, = run_program("sh", "-c", "env -0 | tr '\\n\\0' ' \\n'", env: env)
    after, = run_program("#{ROOT}/bin/culet", "run", "--", "sh", "-c", "env -0 | tr '\\n\\0' ' \\n'", env: env)
    # The shells set the last two themselves.
    changed = (after.lines(chomp: true) - before.lines(chomp: true)).grep_v(/\A(_|OLDPWD|SHLVL)=/)
    assert_equal ["LD_PRELOAD=#{ROOT}/allocator/build/libculet.so"], changed
  end

  def test_a_missing_package_without_apt_get_is_named
    with_commands(without: %w[make]) do |path|
      _, err, status = run_program("#{ROOT}/bin/setup", "demo", env: { "PATH" => path })
      assert_equal 1, status.exitstatus
      assert_match(/no apt-get to install them with: make\./, err)
    end
  end

  def test_a_missing_package_for_a_user_who_is_not_root_is_named
    skip "only root can become another user" unless Process.uid.zero?

    with_commands(without: %w[make sudo], with: %w[apt-get]) do |path|
      copy_for_another_user do |root|
        script = "Process::Sys.setgid(65534); Process::Sys.setuid(65534); exec('#{root}/bin/setup', 'demo')"
        _, err, status = run_program(RbConfig.ruby, "-e", script, env: { "PATH" => path }, chdir: "/")
        assert_equal 1, status.exitstatus
        assert_match(/these Debian packages are missing: make\. Install them as root, e\.g\. `sudo apt-get install make`/, err)
      end
    end
  end

  # Where the tests begin from a fresh checkout, as .ci/run does, they have shown it.
  def test_a_fresh_checkout_builds_what_is_missing_first
    skip_unless_all

    in_fresh_checkout do |root|
      refute File.exist?("#{root}/allocator/build/libculet.so")
      out, err = assert_success("#{root}/bin/culet", "run", "--", RbConfig.ruby, "-I#{root}/lib", "-rculet", "-e",
                                "print Culet.allocator.values_at(:name, :library)", env: BUILD, patience: BUILD_PATIENCE_SECONDS)
      assert_equal ["culet", "#{root}/allocator/build/libculet.so"].inspect, out
      assert_match(/building the allocator/, err)
      assert_match(/building the native extensions/, err)

      _, err, = run_program("#{root}/bin/culet", "lib", env: BUILD, patience: BUILD_PATIENCE_SECONDS)
      assert_empty err, "the second time nothing is missing"

      assert_changed_source_is_built_again(root)
      assert_a_source_that_does_not_compile_is_said(root)
    end
  end

  def test_a_source_that_is_edited_during_a_build_is_newer_than_the_build
    root = new_folder
    FileUtils.mkdir_p("#{root}/ext")
    FileUtils.cp("#{ROOT}/ext/checkout.rb", "#{root}/ext")
    File.write("#{root}/ext/native_build.rb", <<~RUBY)
      require "fileutils"
      class NativeBuild
        Failed = Class.new(StandardError)
        def initialize(scratch:, **) = FileUtils.mkdir_p(scratch)
        def extensions
          now = Time.now
          File.write("#{root}/edited.c", "") until File.exist?("#{root}/edited.c") && File.mtime("#{root}/edited.c") > now
        end
      end
    RUBY
    assert_success(RbConfig.ruby, "#{root}/ext/checkout.rb", "#{root}/scratch", "stamp")
    assert_equal "#{root}/edited.c\n", assert_success("find", "#{root}/edited.c", "-newer", "#{root}/scratch/stamp").first
  end

  def test_a_checkout_in_a_path_with_a_space_says_so
    directory = new_folder
    ["a checkout", "a:checkout"].each do |name|
      root = File.join(directory, name)
      FileUtils.mkdir_p("#{root}/bin")
      FileUtils.cp(%w[setup culet test demo].map { |script| "#{ROOT}/bin/#{script}" }, "#{root}/bin")
      [%w[setup build], %w[culet lib], %w[test]].each do |script, *words|
        out, err, status = run_program("sh", "#{root}/bin/#{script}", *words)
        assert_equal ["", 1, 1], [out, status.exitstatus, err.lines.size], err
        assert_match(/\Aculet setup: this checkout is in "#{root}"; make and LD_PRELOAD cannot handle a space or a colon there: move it/, err)
      end
    end
    FileUtils.mkdir_p("#{directory}/a checkout")
    FileUtils.cp("#{ROOT}/part.mk", "#{directory}/a checkout/part.mk")
    %w[allocator sampler reader replay boot/syscall_counter].each do |part|
      FileUtils.mkdir_p("#{directory}/a checkout/#{part}")
      FileUtils.cp("#{ROOT}/#{part}/Makefile", "#{directory}/a checkout/#{part}")
      [["-C", "#{directory}/a checkout/#{part}"], ["-C", "#{ROOT}/#{part}", "BUILD=#{directory}/a folder"]].each do |words|
        _, err, status = run_program("make", "-s", *words)
        assert_equal [2, 1], [status.exitstatus, err.lines.size], err
        assert_match(/has a space in it, which make cannot handle: move/, err)
      end
    end
  end

  def test_the_test_script_refuses_what_it_does_not_know
    _, err, status = run_program("#{ROOT}/bin/test", "--everything")
    assert_equal 2, status.exitstatus
    assert_match(%r{usage: bin/test}, err)
    _, err, status = run_program("#{ROOT}/bin/test", "test/no_such_test.rb")
    assert_equal [1, "culet test: there is no file test/no_such_test.rb.\n"], [status.exitstatus, err]
  end

  def test_the_test_runner_fails_when_a_test_fails_and_counts_all_files
    directory = new_folder
    { "good" => "assert true", "bad" => "assert_equal 1, 2" }.each do |name, body|
      File.write(File.join(directory, "#{name}_test.rb"),
                 "require \"test_helper\"\nclass #{name.capitalize}Test < Minitest::Test\n  def test_it = #{body}\nend\n")
    end
    runner = [RbConfig.ruby, "-I#{ROOT}/lib", "-I#{ROOT}/test", "#{ROOT}/test/run_all.rb", directory]
    out, _, status = run_program(*runner, "good_test.rb", "bad_test.rb")
    refute_predicate status, :success?
    assert_match(/^2 runs, 2 assertions, 1 failures, 0 errors, 0 skips$/, out)
    out, = assert_success(*runner, "good_test.rb")
    assert_match(/^1 runs, 1 assertions, 0 failures/, out)
  end

  private

  # A PATH with all commands that are here but those.
  def with_commands(without:, with: [])
    Dir.mktmpdir do |directory|
      File.chmod(0o755, directory)
      ENV["PATH"].split(":").reverse_each do |source|
        Dir[File.join(source, "*")].each do |program|
          name = File.basename(program)
          next if without.include?(name) || (name == "apt-get" && !with.include?(name))

          target = File.join(directory, name)
          FileUtils.rm_f(target)
          File.symlink(program, target)
        end
      end
      yield directory
    end
  end

  # The tracked and the new files, not what was built.
  def copy_checkout(root)
    list, = run_program("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    list.split("\0").each do |path|
      next unless File.file?(File.join(ROOT, path))

      FileUtils.mkdir_p(File.dirname(File.join(root, path)))
      FileUtils.cp(File.join(ROOT, path), File.join(root, path), preserve: true)
    end
  end

  def in_fresh_checkout
    Dir.mktmpdir("culet-fresh") do |directory|
      root = File.join(File.realpath(directory), "culet")
      copy_checkout(root)
      # The gems are what a network is needed for; they are taken from here.
      FileUtils.cp_r(File.join(ROOT, ".gems"), root)
      FileUtils.cp(File.join(ROOT, "Gemfile.lock"), root)
      yield root
    end
  end

  def copy_for_another_user
    Dir.mktmpdir("culet-other") do |directory|
      root = File.join(directory, "culet")
      FileUtils.mkdir_p(root)
      FileUtils.cp_r(File.join(ROOT, "bin"), root)
      FileUtils.chown_R(65_534, 65_534, directory)
      yield root
    end
  end

  def assert_changed_source_is_built_again(root)
    { "allocator/src/api.c" => /building the allocator/, "ext/culet/culet.c" => /building the native extensions/ }.each do |source, message|
      # A second ahead: the file system's clock may be coarse.
      FileUtils.touch(File.join(root, source), mtime: Time.now + 1)
      _, err = assert_success("#{root}/bin/culet", "lib", env: BUILD, patience: BUILD_PATIENCE_SECONDS)
      assert_match message, err
    end
  end

  def assert_a_source_that_does_not_compile_is_said(root)
    File.write(File.join(root, "ext/culet/culet.c"), "this is not C\n")
    FileUtils.touch(File.join(root, "ext/culet/culet.c"), mtime: Time.now + 2)
    out, err, status = run_program("#{root}/bin/culet", "lib", env: BUILD, patience: BUILD_PATIENCE_SECONDS)
    assert_equal [1, ""], [status.exitstatus, out]
    assert_match(/^culet setup: building the native extensions failed, see the lines above\.$/, err)
  end
end
