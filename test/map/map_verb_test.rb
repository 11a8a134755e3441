# frozen_string_literal: true

require_relative "map_helper"
require_relative "in_browser"

# `culet map` on real processes and on snapshots.
class MapVerbTest < Minitest::Test
  include MapHelper

  CONTRACT = %w[arenas heaps used_bytes free_resident_bytes free_returned_bytes mmapped_bytes mmapped_chunks metadata_bytes
                tcache_bytes pause_seconds walk_seconds].freeze

  def with_holding_process(&block) = with_program(RbConfig.ruby, "-e", MapHelper::HOLDING, &block)

  def test_a_running_process_as_page_picture_and_figures_of_one_snapshot
    skip "no browser to open the map with; install one with `apt-get install chromium`" unless Browser::PROGRAM

    folder = new_folder
    with_holding_process do |pid|
      out, err = assert_culet_success("map", pid, "--html", "a.html", "--png", "a.png", "--json", chdir: folder)
      assert_equal "culet: wrote a.png\nculet: wrote a.html\n", err
      json = JSON.parse(out)
      assert_empty CONTRACT - json.keys
      assert_equal pid, json["pid"]
      assert_equal "\x89PNG".b, File.binread("#{folder}/a.png", 4)
      assert_shown("#{folder}/a.html", json)
    end
  end

  def assert_shown(path, json)
    Browser.use do |browser|
      assert_equal "drawn", browser.open(path)
      shown = browser.evaluate("Object.fromEntries(Array.from(document.querySelectorAll('td[data-key]'))" \
                               ".map(function (one) { return [one.dataset.key, Number(one.dataset.bytes)]; }))")
      same = shown.keys & json.keys
      assert_includes same, "rss_bytes"
      assert_equal json.slice(*same), shown.slice(*same)
      assert_includes browser.evaluate("document.querySelector('h1').textContent"), "<b>x</b> (process #{json["pid"]})"
      # Pages that two parts of the picture share are in both.
      browser.evaluate(InBrowser::PROBES)
      resident = browser.evaluate("(function () { var sum = 0, all = tally(); for (var kind in all) " \
                                  "{ if (!['gap', 'returned', 'swapped', 'used'].includes(kind)) { sum += all[kind]; } } " \
                                  "return sum; }())")
      assert_in_delta json["rss_bytes"], resident, json["rss_bytes"] * 0.01
      assert_equal ["file://#{path}"], browser.requests
      assert_empty browser.complaints
    end
  end

  def test_without_options_it_writes_a_page_named_after_the_process
    with_snapshot_file(MapHelper.stream) do |path, folder|
      out, err, status = Dir.chdir(folder) { culet("map", path) }
      assert_equal 0, status, err
      assert_empty out
      assert_equal "culet: wrote culet-map-some.html\n", err
      assert_includes File.read("#{folder}/culet-map-some.html"), "<title>puma (process 4242), malloc of glibc: memory map</title>"
    end
  end

  def test_figures_alone_write_no_file
    with_snapshot_file(MapHelper.stream) do |path, folder|
      out, err, status = Dir.chdir(folder) { culet("map", path, "--json") }
      assert_equal 0, status, err
      assert_equal Culet::Map::Totals.new(MapHelper.snapshot).to_h, JSON.parse(out)
      assert_equal ["some.snapshot"], Dir.children(folder)
    end
  end

  def test_two_snapshots_are_two_moments_of_one_page
    with_snapshot_file(MapHelper.stream) do |path, folder|
      out, err, status = Dir.chdir(folder) { culet("map", path, path, "--json", "--html", "a.html") }
      assert_equal 0, status, err
      assert_equal 2, JSON.parse(out)["snapshots"].size
      assert_equal %w[facts-0 facts-1], File.read("#{folder}/a.html").scan(/id="(facts-\d)"/).flatten
    end
  end

  def test_a_series_gives_a_list_of_figures_and_the_last_picture
    with_snapshot_file(MapHelper.stream, MapHelper.stream(pages: 90)) do |path, folder|
      out, err, status = Dir.chdir(folder) { culet("map", path, "--json", "--png", "a.png") }
      assert_equal 0, status, err
      assert_equal 2, JSON.parse(out)["snapshots"].size
      assert_includes err, "a.png shows the last of 2 snapshots"
    end
  end

  def test_wrong_use_is_one_sentence
    assert_sentence(/no process given/, "map", status: 2)
    assert_sentence(/does not run a command/, "map", "1", "--", "ls", status: 2)
    assert_sentence(/--out needs --json; --html FILE writes the page/, "map", "1", "--out", "#{new_folder}/map.html", status: 2)
    assert_sentence(/invalid option: --frobnicate/, "map", "--frobnicate", status: 2)
  end

  def test_what_cannot_be_read_or_written_is_one_sentence
    assert_sentence(/no process/, "map", "999999999")
    assert_sentence(/there is no file/, "map", "no/such/file")
    assert_sentence(/is not a snapshot/, "map", __FILE__)
    with_snapshot_file(MapHelper.stream) do |path, folder|
      assert_sentence(%r{cannot write #{folder}/none/a.html: the directory #{folder}/none does not exist}, "map", path, "--html", "#{folder}/none/a.html")
      assert_sentence(%r{cannot write /dev/full: no space left}, "map", path, "--png", "/dev/full")
      File.binwrite(path, File.binread(path)[0..-40])
      Dir.chdir(folder) { assert_sentence(/is cut off/, "map", path) }
      assert_equal ["some.snapshot"], Dir.children(folder)
    end
  end

  def test_a_snapshot_with_a_histogram_that_is_none_is_refused
    [[[1, 2]], [["x"] * 5], { "a" => 1 }].each do |sizes|
      with_snapshot_file(Synthetic.new(sizes: sizes)) do |path, folder|
        Dir.chdir(folder) { assert_sentence(/#{path} is damaged: sizespart has no buckets/, "map", path) }
        assert_equal ["some.snapshot"], Dir.children(folder)
      end
    end
  end

  def test_a_snapshot_that_contradicts_itself_is_refused
    process = Synthetic.new
    process.map(start: MapHelper::HEAP + 8, pages: 1, use: "other")
    with_snapshot_file(process) do |path, folder|
      Dir.chdir(folder) { assert_sentence(/the data read from #{path} is inconsistent: mapping 0 is not of whole pages/, "map", path) }
      assert_equal ["some.snapshot"], Dir.children(folder)
    end
  end

  def test_without_the_png_gem_it_says_what_to_install
    with_snapshot_file(MapHelper.stream) do |path, folder|
      out, err, status = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/culet", "map", path, "--png", "#{folder}/a.png",
                                     env: { "GEM_HOME" => folder, "GEM_PATH" => folder, "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil })
      assert_equal 1, status.exitstatus
      assert_empty out
      assert_equal "culet: a PNG needs the gem chunky_png, which comes with culet-cli; run `gem install culet-cli`, or use --html\n", err
    end
  end
end
