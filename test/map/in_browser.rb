# frozen_string_literal: true

require_relative "layout"

# Tests of a page in a real browser, without a network.
module InBrowser
  include Layout

  def setup
    super
    skip "no browser to open the page with; install one with `apt-get install chromium`" unless Browser::PROGRAM
  end

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
