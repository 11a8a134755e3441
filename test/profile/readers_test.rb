# frozen_string_literal: true

require_relative "page_helper"
require "json"
require "map/browser"
require "npm_package"
require_relative "stream_maker"

# The files of a profile in the program that they are for: speedscope in a browser.
class ProfileReadersTest < Minitest::Test
  include ProfilePageHelper

  SPEEDSCOPE = NpmPackage.new("speedscope", "1.25.0", "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03")
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
end
