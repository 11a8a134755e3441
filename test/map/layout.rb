# frozen_string_literal: true

require_relative "browser"

# How a page looks at the widths of a phone, a laptop and a desk, in light and in dark: what must hold of each.
module Layout
  # CSS pixels, width and height of the window.
  WINDOWS = [[390, 844], [1280, 800], [1920, 1080]].freeze
  # From this width on no table needs to be scrolled sideways.
  ROOMY = 1280

  # What is wrong, in words: the page or a table wider than its place, words broken within a table's cells.
  FAULTS = <<~JAVASCRIPT.freeze
    (function () {
      var faults = [], root = document.documentElement;
      function name(one) { return one.tagName.toLowerCase() + (one.className && one.className.baseVal === undefined ? "." + one.className : "") + " '" + one.textContent.trim().slice(0, 30) + "'"; }
      function visible(one) { return one.getClientRects().length > 0; }
      if (root.scrollWidth > root.clientWidth) faults.push("the page is " + (root.scrollWidth - root.clientWidth) + " pixels too wide");
      // Words of letters and digits in a cell stand on one line each.
      function broken(node) {
        return Array.from(node.data.matchAll(/[\\p{L}\\p{N}][\\p{L}\\p{N}_.=]*/gu)).find(function (word) {
          var range = document.createRange();
          range.setStart(node, word.index);
          range.setEnd(node, word.index + word[0].length);
          return word[0].length <= 24 && new Set(Array.from(range.getClientRects()).filter(function (box) { return box.width > 0; }).map(function (box) { return Math.round(box.top); })).size > 1;
        });
      }
      Array.from(document.querySelectorAll("table")).filter(visible).forEach(function (table) {
        var place = table.parentElement;
        var out = table.getBoundingClientRect().width - place.getBoundingClientRect().width;
        var scrolls = /auto|scroll/.test(getComputedStyle(place).overflowX);
        if (out > 1 && (!scrolls || innerWidth >= #{ROOMY})) faults.push(name(table) + " is " + Math.round(out) + " pixels wider than its place");
        Array.from(table.querySelectorAll("th, td")).filter(visible).forEach(function (cell) {
          if (cell.scrollWidth > cell.clientWidth + 1) faults.push(name(cell) + " is cut or overflows");
          var walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), node, word;
          while ((node = walker.nextNode())) if ((word = broken(node))) faults.push("'" + word[0] + "' is broken in " + name(cell));
        });
      });
      return faults.slice(0, 12);
    }())
  JAVASCRIPT

  # Luminance of what is behind the text and of the text, from 0 to 1 (relative luminance, WCAG 2.1), and the contrast of both.
  CONTRAST = <<~JAVASCRIPT
    (function () {
      function light(colour) {
        var all = colour.match(/[\\d.]+/g).slice(0, 3).map(function (one) { var part = one / 255; return part <= 0.04045 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4); });
        return 0.2126 * all[0] + 0.7152 * all[1] + 0.0722 * all[2];
      }
      var style = getComputedStyle(document.body), ground = light(style.backgroundColor), ink = light(style.color);
      return { ground: ground, ink: ink, contrast: (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05) };
    }())
  JAVASCRIPT

  # @param path [String] of the page
  # @param ready [String] JavaScript that is true once it is drawn
  # @yieldparam browser [Browser] at each width in light, once it is checked
  def assert_layout(path, ready:)
    Browser.use do |browser|
      browser.colors("light")
      browser.open(path, ready: ready)
      WINDOWS.each do |width, height|
        browser.window(width, height)
        browser.evaluate("new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done, 100); }); })")
        assert_empty browser.evaluate(FAULTS), "#{File.basename(path)} at #{width} pixels"
        yield browser if block_given?
      end
      assert_colors(browser)
    end
  end

  def assert_colors(browser)
    %w[light dark].each do |scheme|
      browser.colors(scheme)
      found = browser.evaluate(CONTRAST)
      scheme == "dark" ? assert_operator(found["ground"], :<, 0.05) : assert_operator(found["ground"], :>, 0.9)
      assert_operator found["contrast"], :>, 7, scheme
    end
  end
end
