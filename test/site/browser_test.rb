# frozen_string_literal: true

require_relative "server"
require "map/browser"

# The site in a real browser, on a phone and on a desk, without another host.
class SiteBrowserTest < Minitest::Test
  WIDTHS = { 390 => 844, 1280 => 800 }.freeze
  # Pages of the API are many, and of two kinds.
  API = %w[/api/ /api/Culet.html /api/_index.html].freeze
  READY = "document.readyState === 'complete'"
  # Elements beyond the right edge that cannot be scrolled to, and pictures that did not load.
  FAULTS = <<~JAVASCRIPT
    (function () {
      var faults = [], root = document.documentElement, wide = root.clientWidth;
      function name(one) { return one.tagName.toLowerCase() + " '" + one.textContent.trim().slice(0, 40) + "'"; }
      function scrolls(one) {
        for (var up = one.parentElement; up && up !== document.body; up = up.parentElement) {
          if (/auto|scroll/.test(getComputedStyle(up).overflowX)) return true;
        }
        return false;
      }
      if (!document.styleSheets.length) faults.push("the page has no style");
      Array.from(document.querySelectorAll("main p, main li, main td")).forEach(function (one) {
        var text = Array.from(one.childNodes).map(function (node) { return node.nodeType === 3 ? node.data : " "; }).join("");
        if (/`|\\]\\(|^\\s*\\|/.test(text)) faults.push("Markdown is left: " + text.trim().slice(0, 60));
      });
      if (root.scrollWidth > wide) faults.push("the page is " + (root.scrollWidth - wide) + " pixels too wide");
      Array.from(document.querySelectorAll("main *")).forEach(function (one) {
        var box = one.getBoundingClientRect();
        if (box.width > 0 && box.right > wide + 1 && !scrolls(one)) faults.push(name(one) + " is cut off");
      });
      return Promise.all(Array.from(document.images).map(function (image) {
        image.loading = "eager";
        return image.decode().catch(function () { faults.push(image.src + " does not load"); });
      })).then(function () { return faults.slice(0, 5); });
    }())
  JAVASCRIPT
  # Waits until the pages in the frames say that they are drawn.
  DRAWN = <<~JAVASCRIPT
    Promise.all(Array.from(document.querySelectorAll("iframe")).map(function (frame) {
      frame.loading = "eager";
      return new Promise(function (done) { (function look() {
        var page = frame.contentDocument, data = page && page.documentElement && page.documentElement.dataset;
        var state = data && (data.map || data.charts || data.profile || data.requires);
        if (!state) return setTimeout(look, 50);
        var ink = Array.from(page.querySelectorAll("canvas")).some(function (canvas) {
          var context = canvas.width && canvas.height && canvas.getContext("2d");
          if (!context) return false;
          return new Set(new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 3;
        }) || page.querySelectorAll("svg .role-mark path").length > 3;
        done([frame.getAttribute("src").split("/").pop(), state, ink]);
      }()); });
    }))
  JAVASCRIPT
  GROUND = "(function (one) { return getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number).slice(0, 3); }(%s))"

  def setup
    skip "takes minutes; bin/test --all runs it" unless all_tests?
    skip "no browser to open the site with; install one with `apt-get install chromium`" unless Browser::PROGRAM

    @site = Site.shared
  end

  # One load for all widths: on each, the theme indexes the site for its search.
  def test_nothing_is_cut_off
    Browser.use do |browser|
      faults = pages.to_h { |path| [path, visit(browser, path) && faults_at_widths(browser) + browser.complaints.dup] }
      assert_empty faults.reject { |_, found| found.empty? }.first(10)
      assert_operator faults.size, :>, 80
      assert_empty(browser.requests.reject { |url| url.start_with?("#{@site.address}/", "data:", "blob:") })
    end
  end

  WIDTHS.each do |width, height|
    define_method(:"test_embedded_pages_draw_at_#{width}_pixels") do
      Browser.use do |browser|
        browser.window(width, height, mobile: width < 500)
        visit(browser, "/examples/")
        expected = %w[map compare cow profile require].map { |name| ["#{name}.html", "drawn", true] }
        assert_equal expected, browser.evaluate(DRAWN)
        assert_empty browser.complaints
      end
    end
  end

  def test_search
    Browser.use do |browser|
      browser.window(1280, 800)
      visit(browser, "/")
      browser.evaluate("document.getElementById('search-input').focus()")
      "unshared".each_char { |letter| browser.key(letter) }
      wait(browser, "document.querySelector('.search-result')")
      assert_match(/Copy-on-write/, browser.evaluate("document.getElementById('search-results').textContent"))
      browser.key("Enter")
      browser.evaluate("document.querySelector('.search-result').click()")
      wait(browser, "location.pathname !== '/culet/' && document.querySelector('h1')")
      assert_empty browser.complaints
    end
  end

  # As the system has it, until the reader chooses; pictures and embedded pages follow.
  def test_dark
    Browser.use do |browser|
      browser.window(1280, 800)
      browser.colors("dark")
      visit(browser, "/examples/")
      browser.evaluate(DRAWN)
      assert_operator light(browser, "document.body"), :<, 40
      frame = "document.querySelector('iframe').contentDocument.body"
      assert_operator light(browser, frame), :<, 60
      browser.evaluate("document.getElementById('scheme').click()")
      assert_operator light(browser, "document.body"), :>, 240
      visit(browser, "/guide/puma/")
      assert_operator light(browser, "document.body"), :>, 240
      browser.evaluate("document.getElementById('scheme').click()")
      assert_operator light(browser, "document.body"), :<, 40
      assert_empty browser.complaints
    end
  end

  def test_the_menu_of_a_phone
    Browser.use do |browser|
      browser.window(390, 844, mobile: true)
      visit(browser, "/")
      assert_equal 0, browser.evaluate("document.getElementById('site-nav').getClientRects().length")
      browser.evaluate("document.getElementById('menu-button').click()")
      assert_equal 1, browser.evaluate("document.getElementById('site-nav').getClientRects().length")
      wanted = %w[Home Start Servers Fix Prove Fleet Architecture Benchmarks API Changelog]
      shown = browser.evaluate("Array.from(document.querySelectorAll('#site-nav > ul > li > a'), function (one) { return one.textContent.trim(); })")
      assert_empty wanted - shown
    end
  end

  private

  # The embedded pages have tests of their own.
  def pages = @site.pages.reject { |path| path.start_with?("/api/") || path.match?(%r{\A/examples/.+}) } + API

  def faults_at_widths(browser)
    WIDTHS.flat_map do |width, height|
      browser.window(width, height, mobile: width < 500)
      browser.evaluate("new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done, 20); }); })")
      browser.evaluate(FAULTS).map { |fault| "at #{width} pixels #{fault}" }
    end
  end

  def visit(browser, path)
    browser.complaints.clear
    browser.visit("#{@site.address}#{path}", ready: "location.pathname === '/culet#{path}' && #{READY}")
  end

  def wait(browser, condition)
    browser.evaluate("new Promise(function (done) { (function look() { #{condition} ? done() : setTimeout(look, 50); }()); })")
  end

  def light(browser, element) = browser.evaluate(GROUND % element).sum / 3
end
