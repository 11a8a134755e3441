# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "json"

class EnvTest < Minitest::Test
  def test_what_it_prints_a_shell_can_evaluate
    text, = assert_culet_success("env", "--allocator", "jemalloc:narenas=2", env: NEUTRAL)
    out, = run_program("sh", "-c", "#{text}\nprintf '%s %s' \"$MALLOC_CONF\" \"$LD_PRELOAD\"", env: NEUTRAL)
    assert_equal "narenas:2 #{Culet::Allocators.parse("jemalloc").library}", out
  end

  def test_a_process_started_that_way_runs_on_culet
    out, err, = run_program("sh", "-c", 'eval "$("$@" env)"; exec "$0" -I lib -rculet -e "print Culet.allocator[:name]"',
                            RbConfig.ruby, *culet_command, env: NEUTRAL)
    assert_equal ["culet", ""], [out, err]
  end

  def test_what_is_to_be_unset_is_unset
    env = NEUTRAL.merge("LD_PRELOAD" => Culet::Allocators.parse("jemalloc").library)
    out, = run_culet("env", "--allocator", "glibc", env: env)
    assert_equal "unset LD_PRELOAD\n", out
    out, = run_culet("env", "--allocator", "glibc", env: NEUTRAL)
    assert_equal "# glibc needs no variables\n", out
  end

  def test_json_is_one_object
    out, = run_culet("env", "--json", "--allocator", "glibc:arena_max=2", env: NEUTRAL.merge("LD_PRELOAD" => "libmimalloc.so.2"))
    assert_equal({ "LD_PRELOAD" => nil, "MALLOC_ARENA_MAX" => "2" }, JSON.parse(out))
  end

  def test_dockerfile_lines_quote_what_is_special_there
    env = NEUTRAL.merge("MALLOC_CONF" => 'prof_prefix:"$x\\')
    out, = run_culet("env", "--dockerfile", "--allocator", "jemalloc:narenas=1", env: env)
    assert_equal ["ENV LD_PRELOAD=\"#{Culet::Allocators.parse("jemalloc").library}\"",
                  'ENV MALLOC_CONF="prof_prefix:\\"\\$x\\\\,narenas:1"'], out.lines(chomp: true)
  end

  def test_out_writes_the_file_whole
    directory = new_folder
    path = File.join(directory, "culet.env")
    out, err = assert_culet_success("env", "--out", path, env: NEUTRAL)
    assert_equal ["", "culet: wrote #{path}\n"], [out, err]
    assert_match(/\Aexport LD_PRELOAD=\S+\n\z/, File.read(path))
    assert_equal ["culet.env"], Dir.children(directory)

    _, err, status = run_culet("env", "--out", File.join(directory, "no/such/file"), env: NEUTRAL)
    assert_equal 1, status.exitstatus
    assert_match(/\Aculet: cannot write .*: the directory .* does not exist/, err)
    assert_equal 1, err.lines.size
  end

  def test_a_command_is_wrong_usage
    _, err, status = run_culet("env", "--", "ruby")
    assert_equal 2, status.exitstatus
    assert_match(/culet run --/, err)
  end
end
