# frozen_string_literal: true

require_relative "layout"

# Tests of a page in a real browser, without a network.
module InBrowser
  include Layout

  def setup
    super
    skip "no browser to open the page with; install one with `apt-get install chromium`" unless Browser::PROGRAM
  end

  # What tests ask of the picture of a map: the place of an address, and bytes by kind.
  PROBES = <<~JAVASCRIPT
    function locate(address) {
      const { strips, columns, pageBytes } = culetMap.view.picture;
      for (const strip of strips) {
        for (const [first, pages, start] of strip.pieces) {
          const page = Math.floor((address - first) / pageBytes), offset = start + page - strip.cell;
          if (page >= 0 && page < pages) return { column: offset % columns, row: strip.row + Math.floor(offset / columns) };
        }
      }
    }
    function look(address) { const { column, row } = locate(address); culetMap.view.frame(column, row, 1, 1); culetMap.view.draw(); }
    function tally() {
      const { picture } = culetMap.view, bytes = { used: 0 };
      for (const { key } of picture.kinds) bytes[key] = 0;
      for (const strip of picture.strips) {
        for (let cell = strip.cell; cell < strip.cell + strip.cells; cell++) {
          const { key } = picture.kinds[picture.kind(cell)];
          bytes[key] += picture.pageBytes;
          if (key === "heap") bytes.used += picture.used(cell);
        }
      }
      return bytes;
    }
  JAVASCRIPT

  # Yields a browser that shows a page, and asserts that nothing went wrong and nothing was loaded.
  #
  # @param page [String] HTML, or the path of a file with it
  # @param state [String] that it has once it is opened
  # @param opening [Hash] as for Browser#open
  # @yieldparam browser [Browser]
  # @yieldparam path [String] of the page
  def showing(page, state: "drawn", **opening)
    Dir.mktmpdir do |folder|
      path = page.start_with?("/") ? page : File.join(folder, "page.html").tap { |name| File.write(name, page) }
      Browser.use do |browser|
        browser.colors("light")
        assert_equal state, browser.open(path, **opening)
        yield browser, path
        assert_equal ["file://#{path}"], browser.requests
        assert_empty browser.complaints
      end
    end
  end
end
