# frozen_string_literal: true

require_relative "page_helper"
require "json"
require "map/browser"
require "npm_package"
require_relative "stream_maker"

# The files of a profile in the programs that they are for: speedscope in a browser, and the code of the Firefox
# Profiler.
class ProfileReadersTest < Minitest::Test
  include ProfilePageHelper

  SPEEDSCOPE = NpmPackage.new("speedscope", "1.25.0", "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03")
  PROFILER = NpmPackage.new("@firefox-devtools/profiler-cli", "0.10.0", "41a25d3ef0c1131f5286eb098489f2868d7b9a627424023fc6e7aff9a33f85e2")
  # Where the latter is known to run.
  NODE = 20
  # Remembers every text that is drawn on a canvas.
  DRAWN = <<~JAVASCRIPT
    (function () { var draw = CanvasRenderingContext2D.prototype.fillText; window.drawn = [];
      CanvasRenderingContext2D.prototype.fillText = function (text) { drawn.push(text); return draw.apply(this, arguments); }; }())
  JAVASCRIPT
  # Chromium's own words about drawing without a graphics card.
  GRAPHICS = /WebGL/
  HOSTILE = %(</script><script>window.pwned = 1</script> "\\ \u2028 💎)

  def test_speedscope_shows_names_and_weights
    in_speedscope(small) do |browser|
      browser.wait("['main', 'Cache#store', 'Hash#[]=', 'st_insert', 'String'].every(function (name) { return drawn.includes(name); })")
      assert_includes browser.evaluate("document.body.innerText"), "live (1/2)"
      browser.key("3")
      rows = sandwich(browser)
      sites = small.sites(:live)
      store = sites.find { |site| site.samples == 40 }
      assert_equal [binary(store.bytes), binary(store.bytes)], rows.fetch("st_insert")
      assert_equal [binary(sites.select { |site| site.frames.any? { |one| one.method == "main" } }.sum(&:bytes)), "0 B"], rows.fetch("main")
    end
  end

  def test_speedscope_shows_hostile_names_as_text
    name = HOSTILE
    in_speedscope(Made.new({ live: [site([frame(name, "/app/#{name}.rb", 1), frame("y", library: name)], 9, class_name: name)] }, name: name)) do |browser|
      browser.key("3")
      assert_includes sandwich(browser).keys.join, "window.pwned"
      refute browser.evaluate("window.pwned === 1")
    end
  end

  def test_speedscope_shows_what_grew
    in_speedscope(Culet::Profile::Difference.new(recorded("same" => 9, "more" => 90, "less" => 9), recorded("same" => 9, "more" => 9, "less" => 90))) do |browser|
      browser.key("3")
      assert_equal({ "more" => [binary(81 * 524_488)] * 2 }, sandwich(browser).slice("more", "less"))
    end
  end

  def test_the_firefox_profiler_shows_processes_and_views
    made = [[7, 40], [8, 10]].map do |pid, samples|
      maker = StreamMaker.new(pid: pid).mapping(0x7000_0000, 0x7000_8000, "/opt/none/liba.so", build_id: "00112233445566778899aabbccddeeff00112233")
      order = maker.ruby("/srv/shop/app/order.rb", 12, "Order#items")
      maker.site([0x7000_0123, maker.ruby("<cfunc>", 0, "String#*"), order], { "a" => [90, 400], "l" => [samples, 400] })
      maker.site([order], { "l" => [2, 400] }, kind: "o", type: "String")
      Culet::Profile::Recording.new(maker.to_s, name: "process #{pid}")
    end
    in_firefox(Data.new(made)) do |ask|
      threads = ask.call("thread", "list")["threads"].map { |one| [one["name"], one["processName"], one["pid"].to_s] }
      assert_equal %w[7 8].flat_map { |pid| %w[live allocated].map { |view| [view, "process #{pid}", pid] } }, threads.sort_by(&:last)
      [["t-0", 40], ["t-2", 10]].each do |thread, samples|
        functions = functions(ask, thread)
        assert_in_delta samples * 524_288, functions["liba.so![liba.so]"][0], samples * 400
        assert_in_delta 2 * 524_288, functions["String"][0], 1000
        assert_in_delta (samples + 2) * 524_288, functions["Order#items"][1], (samples + 2) * 400
        assert_equal 0, functions["Order#items"][0]
      end
      order = ask.call("thread", "functions")["functions"].find { |one| one["name"] == "Order#items" }
      assert_equal "/srv/shop/app/order.rb", ask.call("function", "annotate", order["functionHandle"])["srcAnnotation"]["filename"]
    end
  end

  def test_the_firefox_profiler_reads_a_profile_without_samples
    in_firefox(Data.new([Culet::Profile::Recording.new(StreamMaker.new.to_s, name: "x")])) do |ask|
      assert_equal ["live"], ask.call("thread", "list")["threads"].map { |one| one["name"] }
    end
  end

  def test_the_firefox_profiler_reads_a_difference
    in_firefox(Culet::Profile::Difference.new(recorded("more" => 90, "less" => 9), recorded("more" => 9, "less" => 90))) do |ask|
      assert_in_delta 81 * 524_288, functions(ask, "t-0").fetch("more")[0], 81 * 400
      assert_in_delta(-81 * 524_288, functions(ask, "t-0", "native-deallocations-sites").fetch("less")[0], 81 * 400)
    end
  end

  private

  # @param functions [Hash] name => samples in use
  def recorded(functions)
    maker = StreamMaker.new
    functions.each { |name, samples| maker.site([maker.ruby("/app/#{name}.rb", 1, name)], { "l" => [samples, 400] }) }
    Data.new([Culet::Profile::Recording.new(maker.to_s, name: "x")])
  end

  # Yields a browser in which speedscope shows a profile, as its own command line opens one.
  def in_speedscope(data)
    skip "no browser to open speedscope with; install one with `apt-get install chromium`" unless Browser::PROGRAM
    page = File.join(SPEEDSCOPE.path, "dist/release/index.html")
    Dir.mktmpdir do |folder|
      script = File.join(folder, "profile.js")
      File.write(script, "speedscope.loadFileFromBase64('profile', '#{[Culet::Profile::Speedscope.new(data).to_s].pack("m0")}')")
      Browser.use do |browser|
        assert_equal true, browser.open("#{page}#localProfilePath=#{script}", before: DRAWN, ready: "/\\(1\\/\\d\\)|live/.test(document.body.innerText)")
        yield browser
        assert_empty browser.complaints.grep_v(GRAPHICS)
        assert_empty browser.requests.grep_v(%r{\Afile://(?:#{Regexp.escape(File.dirname(page))}|#{Regexp.escape(folder)})/})
      end
    end
  rescue NpmPackage::Missing => e
    skip e.message
  end

  # @return [Hash] of each function the total and its own weight, as the page shows them
  def sandwich(browser)
    cells = "Array.from(row.cells, function (cell) { return cell.textContent; })"
    rows = "Array.from(document.querySelectorAll('tr'), function (row) { return #{cells}; }).filter(function (row) { return /%\\)$/.test(row[0]); })"
    browser.wait("#{rows}.length > 0")
    browser.evaluate(rows).to_h { |total, own, name| [name, [total, own].map { |text| text.sub(/ \(.*/, "") }] }
  end

  # A size as speedscope writes it.
  def binary(bytes)
    units = [["B", 0], ["KB", 2], ["MB", 2], ["GB", 2]]
    power = (0..3).reverse_each.find { |one| bytes >= 1024**one }
    format("%.#{units[power][1]}f %s", bytes.round.fdiv(1024**power), units[power][0])
  end

  # Yields a lambda that asks the Firefox Profiler's code about a profile. That runs in a process of its own.
  def in_firefox(data)
    skip "there is no Node.js #{NODE} or later; install it with `apt-get install nodejs`" if node_version < NODE
    program = File.join(PROFILER.path, "dist/profiler-cli.js")
    Dir.mktmpdir do |home|
      path = File.join(home, "profile.json")
      File.write(path, Culet::Profile::Firefox.new(data).to_s)
      env = TestHelper::NEUTRAL.merge("HOME" => home)
      daemon = spawn(env, "node", program, "--daemon", path, "--session", "test", out: File::NULL, err: File::NULL)
      run = ->(*words) { run_program("node", program, *words, "--session", "test", env: env) }
      ready(run, File.join(home, ".profiler-cli"))
      yield ->(*words) { JSON.parse(answer(*run.call(*words, "--json"))) }
    ensure
      Process.kill(:KILL, daemon)
      Process.wait(daemon)
    end
  rescue NpmPackage::Missing => e
    skip e.message
  end

  def node_version
    IO.popen(%w[node --version], err: File::NULL, &:read)[/\d+/].to_i
  rescue Errno::ENOENT
    0
  end

  # A question to a session that is half set up removes it.
  def ready(run, folder)
    assert_settles("the session is set up") { %w[test.json test.sock].all? { |name| File.exist?(File.join(folder, name)) } }
    status = nil
    assert_settles(-> { "it answers: #{status}" }) { (status = run.call("status", "--json")).last.success? }
  end

  def answer(out, err, status)
    assert_predicate status, :success?, out + err
    out
  end

  # @return [Hash] of each function its own weight and the total
  def functions(ask, thread, strategy = "native-allocations")
    ask.call("thread", "select", thread)
    found = ask.call("thread", "functions", "--strategy", strategy)
    assert_equal "bytes", found["weightType"]
    found["functions"].to_h { |one| [one["nameWithLibrary"], one.values_at("selfSamples", "totalSamples")] }
  end
end
