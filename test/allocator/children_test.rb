# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "json"

# What a program gets that a Ruby process starts, whose LD_PRELOAD it inherits: CULET_CHILDREN=ruby (the default), all
# or none. Each program looks at itself and prints what it finds as JSON.
class ChildrenTest < Minitest::Test
  PYTHON = "/usr/bin/python3"

  # The address of a block tells who has served it: glibc's first heap is the mapping that the kernel calls [heap].
  # `active` is null when the library is not there at all.
  PYTHON_LOOKS = <<~PYTHON
    import ctypes, json, os
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    address = libc.malloc(100)
    in_heap = False
    for line in open("/proc/self/maps"):
        low, high = (int(n, 16) for n in line.split()[0].split("-"))
        if line.rstrip().endswith("[heap]") and low <= address < high:
            in_heap = True
    print(json.dumps({"active": getattr(libc, "culet_active")() if hasattr(libc, "culet_active") else None,
                      "in_heap": in_heap, "preload": os.environ.get("LD_PRELOAD"),
                      "inherited": os.environ.get("CULET_INHERITED")}))
  PYTHON

  RUBY_LOOKS = <<~RUBY
    require "fiddle"
    require "json"
    program = Fiddle::Handle::DEFAULT
    call = ->(name, types, result) { Fiddle::Function.new(program[name], types, result) }
    address = call.("malloc", [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP).call(100).to_i
    in_heap = File.foreach("/proc/self/maps").any? do |line|
      low, high = line.split.first.split("-").map(&:hex)
      line.chomp.end_with?("[heap]") && address >= low && address < high
    end
    active = begin
      call.("culet_active", [], Fiddle::TYPE_INT).call
    rescue Fiddle::DLError
      nil
    end
    print JSON.generate(active: active, in_heap: in_heap, preload: ENV["LD_PRELOAD"], inherited: ENV["CULET_INHERITED"])
  RUBY

  # Every function of the interface, in a process that the library leaves to glibc.
  PYTHON_USES_ALL = <<~PYTHON
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    for name in "malloc calloc realloc reallocarray memalign aligned_alloc valloc pvalloc".split():
        getattr(libc, name).restype = pointer
    for name in "malloc_usable_size free_sized".split():
        getattr(libc, name).restype = size
    def usable(block): return libc.malloc_usable_size(pointer(block))
    assert libc.culet_active() == 0
    blocks = []
    for bytes in [0, 1, 100, 5000, 200000, 5000000]:
        blocks += [libc.malloc(size(bytes)), libc.calloc(size(3), size(bytes)), libc.memalign(size(256), size(bytes)),
                   libc.aligned_alloc(size(64), size(bytes)), libc.valloc(size(bytes)), libc.pvalloc(size(bytes)),
                   libc.realloc(None, size(bytes)), libc.reallocarray(None, size(2), size(bytes))]
        place = pointer()
        assert libc.posix_memalign(ctypes.byref(place), size(128), size(bytes)) == 0 and place.value % 128 == 0
        blocks.append(place.value)
        assert all(usable(block) >= bytes for block in blocks[-9:])
    blocks = [libc.realloc(pointer(block), size(usable(block) * 2 + 10)) for block in blocks]
    assert all(blocks)
    libc.free_sized(pointer(blocks.pop()), size(1))
    libc.free_aligned_sized(pointer(blocks.pop()), size(16), size(1))
    for block in blocks:
        libc.free(pointer(block))
    libc.free(None)
    assert libc.malloc_trim(size(0)) in (0, 1)
    assert libc.mallopt(-8, 1) == 1
    libc.malloc_stats()
    libc.fopen.restype = pointer
    stream = libc.fopen(b"/dev/null", b"w")
    assert libc.malloc_info(0, pointer(stream)) == 0 and libc.malloc_info(1, pointer(stream)) == 22
    libc.fclose(pointer(stream))
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in
                    "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]
    libc.mallinfo2.restype = Info
    info = libc.mallinfo2()
    if os.confstr("CS_GNU_LIBC_VERSION") >= "glibc 2.33": # before that there is nobody to ask
        assert info.uordblks > 10000 and info.uordblks + info.fordblks == info.arena
    print("all served")
  PYTHON

  def setup
    @library = Culet::Allocators.culet_library
    skip "#{PYTHON} is not installed" unless File.executable?(PYTHON)
  end

  def test_a_program_that_is_given_the_library_on_purpose_is_served
    found = look(PYTHON, "-c", PYTHON_LOOKS)
    assert_equal [1, false, @library, nil], found.values_at("active", "in_heap", "preload", "inherited")
  end

  def test_ruby_is_served_and_marks_its_environment
    found = look(RbConfig.ruby, "-e", RUBY_LOOKS)
    assert_equal [1, false, @library, "1"], found.values_at("active", "in_heap", "preload", "inherited")
  end

  def test_a_program_that_ruby_starts_is_left_to_glibc
    assert_dormant look(*below_ruby(PYTHON, "-c", PYTHON_LOOKS))
  end

  def test_every_function_works_where_the_library_is_dormant
    out, err, status = run_with_library(*below_ruby(PYTHON, "-c", PYTHON_USES_ALL))
    assert status.success?, err
    assert_equal "all served\n", out
    assert_includes err, "in use bytes" # glibc's malloc_stats
    refute_includes err, "culet"
  end

  # As Debian's Redis is: what the library passes on must not end in the other allocator.
  def test_a_program_that_is_linked_to_another_allocator_runs_where_the_library_is_dormant
    other = Culet::Allocators.parse("jemalloc")
    skip "jemalloc is not installed" unless other.available?
    linked = compile_c("#{new_folder}/linked", <<~C, "-fno-builtin", "-Wl,--no-as-needed", other.library)
      #include <malloc.h>
      #include <stdlib.h>
      #include <string.h>
      int main(void)
      {
          char *block = malloc(100);
          size_t bytes = malloc_usable_size(block);
          memset(block, 1, bytes);
          malloc_trim(0);
          free(block);
          return bytes >= 100 ? 0 : 1;
      }
    C
    _, err, status = run_with_library(*below_ruby(linked))
    assert_predicate status, :success?, err
  end

  def test_a_shell_that_ruby_starts_passes_this_on
    assert_dormant look(*below_ruby("sh", "-c", '"$@"; true', "sh", PYTHON, "-c", PYTHON_LOOKS))
  end

  def test_ruby_below_a_shell_below_ruby_is_served
    found = look(*below_ruby("sh", "-c", '"$@"; true', "sh", RbConfig.ruby, "-e", RUBY_LOOKS))
    assert_equal [1, false, @library, "1"], found.values_at("active", "in_heap", "preload", "inherited")
  end

  def test_ruby_below_python_below_ruby_is_served
    python = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    found = look(*below_ruby(PYTHON, "-c", python, RbConfig.ruby, "-e", RUBY_LOOKS))
    assert_equal 1, found["active"]
  end

  def test_a_forked_ruby_is_served
    out, err, status = run_with_library(RbConfig.ruby, "-e", "Process.wait(fork { #{RUBY_LOOKS} }); exit $?.success?")
    assert status.success?, err
    assert_equal 1, JSON.parse(out)["active"]
  end

  def test_exec_replaces_ruby_by_a_program_that_is_left_to_glibc
    assert_dormant look(RbConfig.ruby, "-e", "exec(*ARGV)", "--", PYTHON, "-c", PYTHON_LOOKS)
  end

  def test_all_serves_every_program
    found = look(*below_ruby(PYTHON, "-c", PYTHON_LOOKS), env: { "CULET_CHILDREN" => "all" })
    assert_equal [1, false, @library, nil], found.values_at("active", "in_heap", "preload", "inherited")
  end

  def test_all_serves_a_program_with_the_mark
    found = look(PYTHON, "-c", PYTHON_LOOKS, env: { "CULET_CHILDREN" => "all", "CULET_INHERITED" => "1" })
    assert_equal 1, found["active"]
  end

  def test_none_takes_the_library_out_of_the_environment
    env = { "CULET_CHILDREN" => "none" }
    found = look(RbConfig.ruby, "-e", RUBY_LOOKS, env: env)
    assert_equal [1, nil, nil], found.values_at("active", "preload", "inherited"), "Ruby itself is served"

    found = look(*below_ruby(PYTHON, "-c", PYTHON_LOOKS), env: env)
    assert_equal [nil, true, nil], found.values_at("active", "in_heap", "preload")
    found = look(*below_ruby(RbConfig.ruby, "-e", RUBY_LOOKS), env: env)
    assert_nil found["active"]
  end

  # libm is part of glibc, found without a path, and of no effect.
  def test_none_leaves_other_preloaded_libraries
    { "#{@library}:libm.so.6" => "libm.so.6", "libm.so.6 #{@library}" => "libm.so.6",
      "libm.so.6:#{@library}:libdl.so.2" => "libm.so.6:libdl.so.2" }.each do |preload, left|
      found = look(*below_ruby(PYTHON, "-c", PYTHON_LOOKS), env: { "CULET_CHILDREN" => "none", "LD_PRELOAD" => preload })
      assert_nil found["active"]
      assert_equal left, found["preload"]
    end
  end

  def test_the_default_can_be_named
    assert_dormant look(*below_ruby(PYTHON, "-c", PYTHON_LOOKS), env: { "CULET_CHILDREN" => "ruby" })
  end

  def test_other_values_of_the_mark_do_not_count
    found = look(PYTHON, "-c", PYTHON_LOOKS, env: { "CULET_INHERITED" => "0" })
    assert_equal 1, found["active"]
  end

  # The variables are looked for in an environment of any size and shape.
  def test_the_mark_is_found_in_a_large_environment
    large = (1..400).to_h { |i| ["FILLER_#{i}", "CULET_INHERITED=1 #{"x" * (i * 17 % 3000)}"] }
    assert_equal 1, look(PYTHON, "-c", PYTHON_LOOKS, env: large)["active"]
    assert_dormant look(PYTHON, "-c", PYTHON_LOOKS, env: large.merge("CULET_INHERITED" => "1"))
  end

  # The program runs on, and a program that the library leaves to glibc reports nothing.
  def test_a_value_that_is_not_accepted_is_reported_once
    { "CULET_CHILDREN" => [%w[some], ["", "ruby", "all", "none"], "ruby, all or none; ruby is used"],
      "CULET_DECAY" => [%w[0 9 3600001 20ms], ["", "10"], "milliseconds from 10 to 3600000; 500 is used"],
      "CULET_HARDEN" => [%w[on 4 -1 33], ["", "0", "1"], "a level from 0 to 3; the program is not hardened"],
      "CULET_PROFILE" => [%w[512kb -1 many], ["", "0", "1", "512k"], "a size such as 512k or 1m; the memory profile is off"],
      "CULET_PROFILE_EVERY" => [%w[1s 3601], ["", "0", "60"], "seconds up to 3600; no file is written before the end"] }.each do |name, (refused, accepted, sentence)|
      refused.each { |value| assert_equal ["culet: #{name} takes #{sentence}\n", 0], reported({ name => value }, "sh", "-c", ":"), value }
      accepted.each { |value| assert_equal ["", 0], reported({ name => value }, "sh", "-c", ":"), value }
    end
    code = "system('#{RbConfig.ruby}', '--disable-gems', '-e', '1'); system('sh', '-c', ':')"
    assert_equal ["culet: CULET_HARDEN takes a level from 0 to 3; the program is not hardened\n", 0],
                 reported({ "CULET_HARDEN" => "on", "CULET_PROFILE" => "many" }, RbConfig.ruby, "--disable-gems", "-e", code)
    assert_equal 0, reported({ "CULET_HARDEN" => "on" }, "sh", "-c", "exec 2>&-; exec sh -c :").last
  end

  private

  def run_with_library(*command, env: {})
    run_program(*command, env: NEUTRAL.merge("LD_PRELOAD" => @library).merge(env))
  end

  # @return [Array(String, Integer)] what it writes to stderr, and its exit status
  def reported(env, *command)
    _, err, status = run_with_library(*command, env: env)
    [err, status.exitstatus]
  end

  def look(*command, env: {})
    out, err, status = run_with_library(*command, env: env)
    assert status.success?, "#{status}: #{err}"
    JSON.parse(out)
  end

  # The command as a child of a Ruby process.
  def below_ruby(*command)
    [RbConfig.ruby, "-e", "exit(system(*ARGV) || false)", "--", *command]
  end

  def assert_dormant(found)
    assert_equal [0, true, @library, "1"], found.values_at("active", "in_heap", "preload", "inherited")
  end
end
