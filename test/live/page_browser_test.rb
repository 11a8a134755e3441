# frozen_string_literal: true

require_relative "live_helper"
require "map/in_browser"
require "servers/server_helper"

# The page in a real browser.
class LivePageBrowserTest < Minitest::Test
  include LiveHelper
  include InBrowser

  READY = "document.documentElement && document.documentElement.dataset.live"
  # Controls that a keyboard cannot reach, or that have no name.
  UNREACHABLE = <<~JAVASCRIPT
    Array.from(document.querySelectorAll("button, select, input, summary")).filter(function (one) {
      var named = one.textContent.trim() || (one.labels && one.labels.length) || one.getAttribute("aria-label");
      return one.getClientRects().length && (one.tabIndex < 0 || !named);
    }).map(function (one) { return one.outerHTML; })
  JAVASCRIPT
  # Elements with code in their attributes.
  HANDLERS = <<~JAVASCRIPT
    Array.from(document.querySelectorAll("*")).filter(function (one) {
      return one.getAttributeNames().some(function (name) { return name.startsWith("on"); });
    }).map(function (one) { return one.outerHTML; })
  JAVASCRIPT
  HOSTILE = "<img src=x onerror=alert(1)> __proto__ \u202e"

  def test_curves_are_the_moments
    all = moments(70)
    shown(all) do |browser, _|
      assert_equal 70, count(browser, 70)
      browser.evaluate("document.querySelector('[data-by=processes]').click()")
      settle(browser)
      pss = all.map { |moment| moment["total"]["pss_bytes"] }
      assert_equal pss, browser.evaluate("culetLive.stack.data[1]"), "the highest area is the sum"
      browser.evaluate("document.querySelector('[data-by=levels]').click()")
      settle(browser)
      assert_equal ["libraries and files", "malloc: free, resident", "malloc: in use, resident", "Ruby objects"],
                   browser.evaluate("culetLive.stack.series.map(function (one) { return one.title; }).reverse()"), "a level below zero has no area"
      top = all.map { |moment| moment["processes"].sum { |one| one["figures"]["levels"].values.reject(&:negative?).sum } }
      assert_equal top, browser.evaluate("culetLive.stack.data[1]")
      # Each process's own line, with a gap where it is not there.
      lines = browser.evaluate("culetLive.lines.series.map(function (one) { return [one.key, one.values]; })").to_h
      assert_equal(all.map { |moment| moment["processes"].find { |one| one["pid"] == 12 }&.fetch("pss_bytes") }, lines.fetch("12-1012"))
    end
  end

  # Many moments are thinned for drawing, and a peak of one second stays.
  def test_a_long_window_keeps_its_peaks
    all = Array.new(1500) { |number| moment(number, [process(11, bytes: number == 777 ? 90_000_000 : 50_000_000 + number)]) }
    shown(all) do |browser, _|
      count(browser, 1500)
      browser.evaluate("(function () { var list = document.getElementById('window'); list.value = '0'; list.dispatchEvent(new Event('change')); culetLive.timeline.go(1201); }())")
      settle(browser)
      times, lines = browser.evaluate("[culetLive.stack.times, culetLive.lines.series[0].values]")
      assert_includes 300..700, times.size
      assert_equal [START, START + 1499], [times.first, times.last]
      assert_equal times, times.uniq.sort
      assert_includes times, START + 1201
      assert_equal [START + 777, 80_000_000], times.zip(lines).max_by(&:last)
    end
  end

  # As in all tables, sizes beside a limit of whole MiB are in MiB.
  def test_the_limit_is_in_the_units_it_was_given_in
    limits = { 400 << 20 => ["110 MiB", "290 MiB of 400 MiB used"], 400_000_000 => ["95.9 MB", "304 MB of 400 MB used"] }
    limits.each do |bytes, texts|
      limit = { "limit_bytes" => bytes, "used_bytes" => 290 << 20, "headroom_bytes" => bytes - (290 << 20), "source" => "setting" }
      shown([moment(0, [process(11)], limit: limit)]) do |browser, _|
        card = "document.querySelector('#cards meter').parentElement"
        assert_equal texts, browser.evaluate("['span', 'small'].map(function (tag) { return #{card}.querySelector(tag).textContent; })")
      end
    end
  end

  def test_one_process_by_click_and_by_list
    shown(moments(20)) do |browser, _|
      browser.evaluate("document.querySelectorAll('#processes tbody button')[1].click()")
      settle(browser)
      assert_equal "11-1011", browser.evaluate("document.getElementById('subject').value")
      assert_equal 50_000_000 + (19 * 100_000) + 1000, browser.evaluate("culetLive.stack.data[1].at(-1)")
      assert browser.evaluate("document.querySelector('[data-by=processes]').disabled")
      assert_match(/culet map 11 --html FILE .* culet profile 11 /, browser.evaluate("document.getElementById('commands').textContent"))
      browser.evaluate("(function () { var list = document.getElementById('subject'); list.value = 'all'; list.dispatchEvent(new Event('change')); }())")
      settle(browser)
      refute browser.evaluate("document.querySelector('[data-by=processes]').disabled")
    end
  end

  def test_pause_scrub_and_back
    history = history(frames(moments(30)))
    with_page(history) do |browser, _|
      count(browser, 30)
      browser.evaluate("(function () { var slider = document.getElementById('scrub'); slider.value = 4; slider.dispatchEvent(new Event('input')); }())")
      settle(browser)
      assert_equal ["paused", "Go live"], browser.evaluate("[document.getElementById('status').textContent, document.getElementById('pause').textContent]")
      assert_equal START + 4, browser.evaluate("culetLive.timeline.moment.at")
      frames(moments(40)).drop(30).each { |frame| history.add(frame) }
      count(browser, 40)
      assert_equal START + 4, browser.evaluate("culetLive.timeline.moment.at"), "what comes later moves nothing"
      browser.key("ArrowRight")
      assert_equal START + 5, browser.evaluate("culetLive.timeline.moment.at")
      browser.key(" ")
      settle(browser)
      assert_equal [START + 39, "live"], browser.evaluate("[culetLive.timeline.moment.at, document.getElementById('status').textContent]")
    end
  end

  def test_events_are_listed_and_told_and_hidden
    events = [event(3, 11, "major_gc", "a major collection"), event(4, 12, "fork", HOSTILE), event(5, 12, "unheard of", "something"), event(6, nil, "gc", "of all")]
    all = Array.new(8) { |number| moment(number, [process(11), process(12)], events: events.select { |one| one["at"] == START + number }) }
    shown(all) do |browser, _|
      count(browser, 8)
      assert_equal ["of all", "something", HOSTILE, "a major collection"], rows(browser, "#events tbody tr").map(&:last)
      box = "culetLive.stack.plot.over.getBoundingClientRect()"
      left, top = browser.evaluate("[#{box}.left + culetLive.stack.plot.valToPos(#{START + 4}, 'x'), #{box}.top - 6]")
      browser.mouse("mouseMoved", left, top)
      assert_match(/\A\d\d:\d\d:\d\d process 12: <img/, browser.evaluate("document.getElementById('tip').textContent"))
      browser.mouse("mouseMoved", browser.evaluate("#{box}.left + culetLive.stack.plot.valToPos(#{START + 6}, 'x')"), top)
      assert_match(/\A\d\d:\d\d:\d\d: of all/, browser.evaluate("document.getElementById('tip').textContent"))
      browser.evaluate("document.querySelector('#kinds input').click()")
      settle(browser)
      assert_equal 3, browser.evaluate("document.querySelectorAll('#events tbody tr').length")
      browser.evaluate("document.querySelector('#events button').click()")
      assert_equal START + 6, browser.evaluate("culetLive.timeline.moment.at")
    end
  end

  # Names are text wherever they stand, and a key is a key.
  def test_hostile_names_are_text
    all = Array.new(5) { |number| moment(number, [process(11, title: HOSTILE), process(12, title: "a\u0000b</script><script>alert(2)</script>", figures: false)]) }
    all.last["processes"].first["figures"]["levels"]["constructor"] = 5
    with_page(history(frames(all)), page: Page.new(subject: HOSTILE, every_seconds: 1.0)) do |browser, _|
      count(browser, 5)
      assert_equal HOSTILE, browser.evaluate("document.querySelector('h1').textContent")
      assert_equal 0, browser.evaluate("document.querySelectorAll('img, main script').length")
      assert_includes browser.evaluate("document.getElementById('processes').textContent"), HOSTILE
      assert_match(/require "culet.agent"/, browser.evaluate("document.getElementById('hint').textContent"))
    end
  end

  def test_a_recording_is_played
    folder = new_folder
    record("#{folder}/a.live", moments(50))
    recording = Recording.new("#{folder}/a.live")
    page = Page.new(subject: recording.subject, every_seconds: 1.0, recording: true, notes: ["one of 3 moments is shown"])
    with_page(recording.history, page: page) do |browser, _|
      count(browser, 50)
      browser.wait("document.getElementById('status').textContent === 'recording'")
      assert_equal ["One of 3 moments is shown.", true], browser.evaluate("[document.querySelector('.notice').textContent, document.getElementById('commands').hidden]")
      browser.evaluate("document.getElementById('speed').value = '60'; document.getElementById('pause').click()")
      browser.wait("culetLive.timeline.index > 10")
      browser.wait("culetLive.timeline.index === 49 && !culetLive.timeline.playing")
    end
  end

  def test_widths_themes_and_keyboard
    with_server(history(frames(moments(60, workers: 6)))) do |server, _|
      assert_layout(server.url, ready: READY) do |browser|
        count(browser, 60)
        settle(browser)
        assert_equal [true, true], browser.evaluate("[culetLive.stack.plot.width, culetLive.lines.plot.width].map(function (width) { return width <= innerWidth; })")
      end
      Browser.use do |browser|
        browser.open(server.url, ready: READY)
        count(browser, 60)
        assert_empty browser.evaluate(UNREACHABLE)
        assert_empty browser.evaluate(HANDLERS)
        browser.evaluate("document.querySelectorAll('#processes tbody button')[1].focus()")
        browser.key("Enter") && settle(browser)
        assert_equal "BUTTON", browser.evaluate("document.activeElement.tagName"), "drawing takes no focus away"
      end
    end
  end

  # A proxy between the page and the server is cut.
  def test_the_page_connects_again_without_a_gap
    history = history(frames(moments(10)))
    with_page(history) do |browser, server|
      count(browser, 10)
      history.stop # every page is disconnected, and refused frames until the history goes on
      browser.wait("!document.getElementById('failure').hidden && document.getElementById('status').textContent === 'connection lost'")
      history.instance_variable_set(:@stopped, false)
      frames(moments(25)).drop(10).each { |frame| history.add(frame) }
      assert_equal 25, count(browser, 25)
      browser.wait("document.getElementById('failure').hidden")
      numbers = browser.evaluate("culetLive.store.moments.map(function (one) { return one.n; })")
      assert_equal((1..25).to_a, numbers)
      assert_equal 1, browser.requests.count(server.url)
    end
  end

  private

  def shown(all, &block) = with_page(history(frames(all)), &block)

  def with_page(history, **options)
    with_server(history, **options) do |server, notes|
      Browser.use do |browser|
        assert_equal "drawn", browser.open(server.url, ready: READY)
        yield browser, server
        assert_empty(browser.requests.reject { |url| url.start_with?(server.url) || url.start_with?("data:") })
        assert_empty browser.complaints.grep_v(/ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|Failed to load resource/)
      end
      assert_empty notes.string
    end
  end

  # The texts of the cells of a table.
  def rows(browser, selector)
    browser.evaluate("Array.from(document.querySelectorAll(#{selector.dump}), function (row) { return Array.from(row.children, function (cell) { return cell.textContent; }); })")
  end

  def settle(browser) = browser.evaluate("new Promise(function (done) { requestAnimationFrame(function () { requestAnimationFrame(done); }); })")

  # @return [Integer] moments of the page, once there are so many
  def count(browser, number)
    browser.wait("window.culetLive && culetLive.store.moments.length >= #{number}")
    settle(browser)
    browser.evaluate("culetLive.store.moments.length")
  end
end
