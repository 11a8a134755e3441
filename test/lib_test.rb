# frozen_string_literal: true

require "test_helper"
require "json"

class LibTest < Minitest::Test
  def test_the_path_stands_alone_and_can_be_preloaded
    out, err = assert_culet_success("lib")
    assert_empty err
    assert_match(%r{\A/\S+/libculet\.so\n\z}, out)
    maps, = run_program("cat", "/proc/self/maps", env: NEUTRAL.merge("LD_PRELOAD" => out.chomp))
    assert_includes maps, out.chomp
  end

  def test_json
    out, = culet("lib", "--json")
    assert_equal culet("lib").first.chomp, JSON.parse(out)["path"]
  end

  def test_parts_to_load
    %w[auto agent].each { |part| assert_equal ["#{ROOT}/lib/culet/#{part}.rb\n", "", 0], culet("lib", part) }
    assert_equal "#{ROOT}/lib/culet/require.rb", JSON.parse(culet("lib", "require", "--json").first)["path"]
  end

  # A name for LD_PRELOAD that stays, whichever version and processor the library is for.
  def test_a_link_to_the_library
    directory = new_folder
    path = File.join(directory, "lib/libculet.so")
    2.times { assert_equal ["#{path}\n", "", 0], culet("lib", "--link", path) }
    assert_equal culet("lib").first.chomp, File.readlink(path)
    assert_equal "#{path}\n", culet("lib", "--link", File.dirname(path)).first
    assert_equal path, JSON.parse(culet("lib", "--link", path, "--json").first)["path"]
    script = "require 'culet'; p Culet.allocator.values_at(:name, :active)"
    out, err, = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-e", script, env: NEUTRAL.merge("LD_PRELOAD" => path))
    assert_equal ["[\"culet\", true]\n", ""], [out, err]
    assert_equal ["libculet.so"], Dir.children(File.dirname(path))
  end

  def test_a_link_replaces_nothing_but_a_link
    Dir.mktmpdir do |directory|
      path = File.join(directory, "file")
      File.write(path, "kept")
      assert_sentence(/is not a link; remove it, or choose another path/, "lib", "--link", path)
      assert_equal "kept", File.read(path)
      assert_sentence(/cannot make the link .*: (not a directory|file exists)/, "lib", "--link", File.join(path, "x"))
    end
    [["--link", "/tmp/a b"], ["auto", "--link", "/tmp/x"]].each { |words| assert_equal 2, culet("lib", *words).last }
  end

  def test_other_arguments_are_wrong_usage
    [%w[x], %w[auto agent]].each do |words|
      assert_sentence(/prints the path of libculet\.so; `culet lib PART` prints the path of a part/, "lib", *words, status: 2)
    end
    assert_sentence(/does not run a command; write `culet lib/, "lib", "--", "true", status: 2)
  end
end
