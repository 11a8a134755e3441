# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "culet/version"

class AllocatorsTest < Minitest::Test
  include Culet

  def test_every_name_parses_to_itself
    Allocators.names.each { |name| assert_equal name, Allocators.parse(name).spec }
  end

  def test_settings_are_kept_in_order
    choice = Allocators.parse("jemalloc:narenas=2,dirty_decay_ms=0")
    assert_equal "jemalloc:narenas=2,dirty_decay_ms=0", choice.spec
    assert_equal({ "narenas" => "2", "dirty_decay_ms" => "0" }, choice.settings)
  end

  {
    "snmalloc" => /no allocator "snmalloc".*glibc, jemalloc, tcmalloc, mimalloc, rpmalloc, culet/,
    "" => /no allocator ""/,
    "glibc:" => /KEY=VALUE/,
    "glibc:arena_max" => /KEY=VALUE.*glibc:arena_max=2/,
    "glibc:arenas=2" => /no setting "arenas"; it has arena_max/,
    "glibc:arena_max=two" => /takes a whole number, not "two"/,
    "glibc:arena_max=" => /takes a whole number/,
    "glibc:arena_max=1,arena_max=2" => /twice/,
    "jemalloc:narenas=2," => /KEY=VALUE/,
    "jemalloc:=2" => /KEY=VALUE/,
    "jemalloc:narenas=2 -- x" => /takes a word or a number/,
    "tcmalloc:release_rate=fast" => /takes a number/,
    "mimalloc:Purge=1" => /no setting "Purge"/,
    "rpmalloc:arenas=2" => /rpmalloc has no settings/,
    "rpmalloc:" => /rpmalloc has no settings/,
    "culet:children=some" => /takes ruby, all, none/,
    "trim" => /no allocator "trim".*write e.g. glibc:trim/,
    "glibc:trim=" => /trim takes background, now, off, or nothing, not ""/,
    "glibc:trim=often" => /trim takes .*not "often"/,
    "glibc:trim,arena_max=2,trim=now" => /trim is given twice/,
    "rpmalloc:trim" => /rpmalloc has no function/
  }.each do |spec, message|
    define_method(:"test_#{spec.inspect}_is_refused") do
      error = assert_raises(UsageError) { Allocators.parse(spec) }
      assert_match message, error.message
    end
  end

  def test_trim_comes_first_and_background_is_what_the_word_alone_means
    { "glibc:trim" => "glibc:trim", "glibc:trim=background" => "glibc:trim", "jemalloc:narenas=2,trim" => "jemalloc:trim,narenas=2",
      "culet:trim=now" => "culet:trim=now", "rpmalloc:trim=off" => "rpmalloc:trim=off" }.each do |given, canonical|
      assert_equal canonical, Allocators.parse(given).spec
    end
    assert_equal({ "narenas" => "2" }, Allocators.parse("jemalloc:trim,narenas=2").settings)
    assert Allocators.parse("glibc:trim=now").trim.on?
    %w[glibc glibc:trim=off].each { |spec| refute Allocators.parse(spec).trim.on? }
  end

  def test_trim_goes_before_what_rubyopt_holds_and_is_not_repeated
    own = "-I#{TestHelper::ROOT}/lib -rculet/auto"
    choice = Allocators.parse("glibc:trim")
    assert_equal({ "LD_PRELOAD" => nil, "RUBYOPT" => own }, choice.environment({}))
    changes = choice.environment({ "RUBYOPT" => "-W0 -rbundler/setup" })
    assert_equal "#{own} -W0 -rbundler/setup", changes["RUBYOPT"]
    assert_equal changes["RUBYOPT"], choice.environment(changes)["RUBYOPT"]
  end

  def test_what_the_user_says_about_trimming_is_kept_but_for_the_manner
    base = { "CULET_TRIM" => "off,minimum=4M" }
    { "glibc" => base["CULET_TRIM"], "glibc:trim" => "background,minimum=4M", "glibc:trim=now" => "now,minimum=4M",
      "glibc:trim=off" => "off,minimum=4M" }.each do |spec, value|
      assert_equal value, base.merge(Allocators.parse(spec).environment(base))["CULET_TRIM"], spec
    end
    assert_equal "now", Allocators.parse("glibc:trim=now").environment({})["CULET_TRIM"]
    refute Allocators.parse("glibc:trim").environment({}).key?("CULET_TRIM")
  end

  def test_isolated_contenders_trim_only_where_they_say_so
    base = { "CULET_TRIM" => "now,minimum=4M", "RUBYOPT" => "-rculet/auto" }
    { "glibc" => "off", "glibc:trim" => nil, "glibc:trim=now" => "now", "glibc:trim=off" => "off" }.each do |spec, value|
      merged = base.merge(Allocators.parse(spec).environment(base, isolated: true))
      value ? assert_equal(value, merged["CULET_TRIM"], spec) : assert_nil(merged["CULET_TRIM"])
      assert merged["RUBYOPT"].end_with?("-rculet/auto")
    end
    assert_nil({ "CULET_TRIM" => "now" }.merge(Allocators.parse("glibc").environment({ "CULET_TRIM" => "now" }, isolated: true))["CULET_TRIM"])
  end

  def test_libraries_of_the_installed_allocators_define_malloc_for_this_machine
    installed.each do |name|
      path = Allocators.parse(name).library
      assert path.start_with?("/"), path
      elf = Elf.new(path)
      assert elf.same_kind?(Elf.new("/proc/self/exe")), path
      assert elf.defines?("malloc"), path
      assert_equal name, Allocators.of_library(path)
      assert_equal name, Allocators.of_library(File.realpath(path))
    end
  end

  # As Debian's newest releases name them, so that a change of number there is found.
  def test_file_names_of_the_newest_packages
    { "jemalloc" => "libjemalloc.so.2", "tcmalloc" => "libtcmalloc_minimal.so.4.6.5", "mimalloc" => "libmimalloc.so.3.6",
      "rpmalloc" => "librpmalloc.so.1.0.0" }.each do |name, file|
      definition = Allocators.definitions.find { |known| known.name == name }
      assert(definition.patterns.any? { |pattern| pattern.match?(file) }, file)
      assert_equal name, Allocators.of_library("/usr/lib/#{file}")
    end
  end

  # Copies of libraries that a package brought and that none did: rpmalloc's file name does not tell its release.
  def test_a_release_that_only_the_package_tells
    library = Allocators.parse("jemalloc").library
    by_package = rpmalloc_at(library).version
    assert_equal `dpkg-query --show --showformat='${Version}' libjemalloc2`[/\d+(\.\d+)+/], by_package
    Dir.mktmpdir do |directory|
      copy = File.join(directory, "librpmalloc.so.1.0.0")
      FileUtils.cp(library, copy)
      assert_equal "build #{Elf.new(copy).build_id[0, 12]}", rpmalloc_at(copy).version
    end
  end

  # Debian's libraries under another path and name: what they export tells which they are.
  def test_a_library_by_its_path
    in_copies do |name, copy|
      choice = Allocators.parse(copy)
      assert_equal [name, copy, copy, true], [choice.name, choice.spec, choice.library, choice.available?]
      assert_equal Allocators.parse(name).version, choice.version, name
      assert_equal copy, choice.environment({ "LD_PRELOAD" => Allocators.parse(name).library })["LD_PRELOAD"]
      assert choice.library?(copy)
      refute choice.library?(File.realpath(Allocators.parse(name).library))
      assert_equal "#{copy}:trim", Allocators.parse("#{copy}:trim").spec
    end
  end

  def test_settings_of_a_library_by_its_path
    in_copies do |name, copy|
      next unless name == "jemalloc"

      assert_equal "narenas:2", Allocators.parse("#{copy}:narenas=2").environment({})["MALLOC_CONF"]
      assert_equal copy, Dir.chdir(File.dirname(copy)) { Allocators.parse("./#{File.basename(copy)}").spec }
      File.symlink(copy, "#{copy}.link")
      assert_equal copy, Allocators.parse("#{copy}.link").library
    end
  end

  # A build of one's own, and one of a family that no distribution packages.
  def test_an_allocator_that_nobody_knows
    in_directory do |directory|
      { "libown.so" => "unknown", "libsnmallocshim.so" => "snmalloc" }.each do |file, name|
        library = compile_c(File.join(directory, file), "void *malloc(unsigned long n) { return 0; }", "-shared", "-fPIC", "-nostdlib",
                            "-Wl,--build-id=0x0123456789abcdef")
        choice = Allocators.parse(library)
        assert_equal [name, library, "0123456789abcdef"], [choice.name, choice.spec, Elf.new(library).build_id]
        assert_match(/has no function that returns free memory/, assert_raises(UsageError) { Allocators.parse("#{library}:trim") }.message)
        assert_match(/has no settings/, assert_raises(UsageError) { Allocators.parse("#{library}:a=1") }.message)
      end
    end
  end

  def test_files_that_are_no_allocators
    libc, libm = %w[c m].map { |name| File.read("/proc/self/maps")[%r{ (/\S*/lib#{name}[.-]\S*)}, 1] }
    { "./nosuch.so" => %r{\Acannot read \./nosuch\.so: no such file}, "/" => %r{\A/ is not a shared library}, __FILE__ => /is not a shared library/,
      libc => /is a C library; write glibc/, libm => /does not define malloc/ }.each do |path, message|
      assert_match message, assert_raises(UsageError, path.to_s) { Allocators.parse(path) }.message
    end
  end

  def test_glibc_needs_no_library
    choice = Allocators.parse("glibc")
    assert_nil choice.library
    assert_nil choice.package
    assert_predicate choice, :available?
    assert_equal({ "LD_PRELOAD" => nil }, choice.environment({}))
  end

  def test_a_missing_library_names_its_package
    nowhere = Class.new { def find(_patterns) = nil }.new
    definition = Allocators.definitions.find { |known| known.name == "mimalloc" }
    choice = Allocators::Choice.new(definition: definition, settings: {}, locator: nowhere)
    refute_predicate choice, :available?
    error = assert_raises(Error) { choice.environment({}) }
    assert_match(/mimalloc is not installed: install the Debian package libmimalloc2.0/, error.message)
  end

  def test_the_users_own_preload_is_kept_and_other_allocators_are_left_out
    base = { "LD_PRELOAD" => "/usr/lib/libjemalloc.so.2 /opt/libtrace.so:libtcmalloc.so.4" }
    library = Allocators.parse("mimalloc").library
    assert_equal "#{library}:/opt/libtrace.so", Allocators.parse("mimalloc").environment(base)["LD_PRELOAD"]
    assert_equal "/opt/libtrace.so", Allocators.parse("glibc").environment(base)["LD_PRELOAD"]
    assert_equal "/opt/\xFF/x.so", Allocators.parse("glibc").environment({ "LD_PRELOAD" => " /opt/\xFF/x.so" })["LD_PRELOAD"], "a name that is no text"
  end

  def test_glibc_settings_win_over_the_users_tunables
    base = { "GLIBC_TUNABLES" => "glibc.malloc.arena_max=9:glibc.rtld.nns=3" }
    changes = Allocators.parse("glibc:arena_max=2,tcache_count=0").environment(base)
    assert_equal "2", changes["MALLOC_ARENA_MAX"]
    assert_equal "\xFF".b, Allocators.parse("culet").environment({ "GLIBC_TUNABLES" => "glibc.malloc.arena_max=9:\xFF" }, isolated: true)["GLIBC_TUNABLES"]
    assert_equal "glibc.rtld.nns=3:glibc.malloc.tcache_count=0", changes["GLIBC_TUNABLES"]
  end

  def test_settings_of_the_others_become_their_variables
    assert_equal "stats_print:true,narenas:2",
                 Allocators.parse("jemalloc:narenas=2").environment({ "MALLOC_CONF" => "stats_print:true" })["MALLOC_CONF"]
    assert_equal "10", Allocators.parse("tcmalloc:release_rate=10").environment({})["TCMALLOC_RELEASE_RATE"]
    assert_equal "0", Allocators.parse("mimalloc:purge_delay=0").environment({})["MIMALLOC_PURGE_DELAY"]
    assert_equal "all", Allocators.parse("culet:children=all").environment({})["CULET_CHILDREN"]
  end

  def test_the_mark_of_an_inherited_preload_is_not_handed_on
    assert_nil Allocators.parse("culet").environment({ "CULET_INHERITED" => "1" }).fetch("CULET_INHERITED")
  end

  def test_isolated_contenders_have_no_settings_but_their_own
    base = { "MALLOC_ARENA_MAX" => "1", "MALLOC_CONF" => "narenas:1", "MIMALLOC_PURGE_DELAY" => "1", "HOME" => "/root",
             "GLIBC_TUNABLES" => "glibc.malloc.tcache_count=0:glibc.rtld.nns=3" }
    changes = Allocators.parse("jemalloc:narenas=4").environment(base, isolated: true)
    assert_equal "narenas:4", changes["MALLOC_CONF"]
    assert_equal "glibc.rtld.nns=3", changes["GLIBC_TUNABLES"]
    %w[MALLOC_ARENA_MAX MIMALLOC_PURGE_DELAY].each { |key| assert_nil changes.fetch(key) }
    refute changes.key?("HOME")
  end

  def test_versions_are_those_that_the_libraries_tell
    installed.each do |name|
      assert_match(/\A\d+\.\d+/, Allocators.parse(name).version, name)
    end
    assert_equal Culet::VERSION, Allocators.parse("culet").version
    assert_match(/\A2\.\d+\z/, Allocators.parse("glibc").version)
  end

  def test_a_library_in_ld_library_path_comes_first
    Dir.mktmpdir do |directory|
      FileUtils.cp(Allocators.parse("jemalloc").library, File.join(directory, "libjemalloc.so.1"))
      locator = Allocators::Locator.new(environment: { "LD_LIBRARY_PATH" => "/opt/\xFF:#{directory}" })
      assert_equal File.join(directory, "libjemalloc.so.1"), locator.find([/\Alibjemalloc\.so(?:\.([\d.]+))?\z/])
    end
  end

  def test_a_program_in_the_current_folder_is_not_taken_for_ldconfig
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "ldconfig"), "#!/bin/sh\n: >was_run\n", perm: 0o755)
      Dir.chdir(directory) { Allocators::Locator.new(environment: {}).find([/none/]) }
      assert_equal ["ldconfig"], Dir.children(directory)
    end
  end

  # In the locale C no byte beyond ASCII is text.
  def test_files_of_this_process_whose_names_are_no_text
    folder = File.join(new_folder, "\u00e9")
    Dir.mkdir(folder)
    library = compile_c(File.join(folder, "x.so"), "int none;", "-shared", "-fPIC")
    out, err, = run_program(*culet_command, "run", "--allocator", "jemalloc", "--", "echo", "well", env: { "LC_ALL" => "C", "LD_PRELOAD" => library })
    assert_equal ["well\n", ""], [out, err]
  end

  def test_a_library_for_another_machine_and_a_text_file_are_passed_over
    Dir.mktmpdir do |directory|
      foreign = File.binread(Allocators.parse("jemalloc").library)
      foreign[18, 2] = [243].pack("S<") # EM_RISCV
      File.binwrite(File.join(directory, "libjemalloc.so.9"), foreign)
      File.write(File.join(directory, "libjemalloc.so.8"), "INPUT(libjemalloc.so.2)")
      locator = Allocators::Locator.new(environment: { "LD_LIBRARY_PATH" => directory })
      assert_equal Allocators.parse("jemalloc").library, locator.find([/\Alibjemalloc\.so(?:\.([\d.]+))?\z/])
    end
  end

  def test_a_path_that_ld_preload_cannot_hold_is_refused
    error = assert_raises(Error) { Allocators::Preload.new(nil).with("/opt/my libs/libculet.so") }
    assert_match(/spaces and colons/, error.message)
  end

  private

  # @yieldparam name [String] of the allocator
  # @yieldparam copy [String] path of its library, which does not tell the name
  def in_copies
    Dir.mktmpdir do |directory|
      (installed - %w[culet]).each.with_index do |name, number|
        copy = File.join(File.realpath(directory), "lib#{number}.so")
        FileUtils.cp(Allocators.parse(name).library, copy)
        yield name, copy
      end
    end
  end

  def installed = TestHelper.allocators - ["glibc"]

  # @return [Culet::Allocators::Choice] rpmalloc, found at that place
  def rpmalloc_at(path)
    locator = Struct.new(:path) { def find(_patterns) = path }.new(path)
    definition = Allocators.definitions.find { |known| known.name == "rpmalloc" }
    Allocators::Choice.new(definition: definition, settings: {}, locator: locator)
  end
end
