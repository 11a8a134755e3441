# frozen_string_literal: true

require "fileutils"
require "io/nonblock"
require "io/wait"
require "json"
require "minitest"
require "tmpdir"
require "culet/system/executables"

# A real Chromium without a window, told what to do through its debugging pipe (NUL-separated JSON on descriptors 3 and
# 4): it opens a page, puts hands on it, says what it shows and what it asked the network for.
class Browser
  PROGRAM = %w[chromium chromium-browser google-chrome google-chrome-stable].filter_map { |name| Culet::Executables.find(name) }
                                                                            .find { |path| !File.realpath(path).include?("/snap") }

  FLAGS = %w[--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update
             --disable-sync --disable-extensions --hide-scrollbars --remote-debugging-pipe --force-device-scale-factor=1].freeze
  PATIENCE_SECONDS = 90

  WINDOW = [1400, 900].freeze

  # What the page asked for, and what went wrong in it.
  attr_reader :requests, :complaints

  # Yields the one that all tests share, with a fresh page: starting it takes longer than most tests.
  def self.use
    @shared ||= new(Dir.mktmpdir).tap { |browser| Minitest.after_run { browser.quit } }
    @shared.fresh
    yield @shared
  end

  def initialize(folder)
    @folder = folder
    theirs, @out = IO.pipe
    @in, answers = IO.pipe
    # Ruby's pipes do not block, and Chromium takes "nothing there yet" for the end.
    [theirs, answers].each { |io| io.nonblock = false }
    @log = File.join(folder, "log")
    @pid = spawn({ "LD_PRELOAD" => nil, "HOME" => folder, "TMPDIR" => folder }, PROGRAM, *FLAGS, "--user-data-dir=#{folder}/profile", "--window-size=#{WINDOW.join(",")}",
                 "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "about:blank", in: File::NULL, out: @log, err: @log, 3 => theirs, 4 => answers, pgroup: true)
    [theirs, answers].each(&:close)
    @buffer = +"".b
    @number = 0
  end

  # Closes the page before, and opens an empty one that has nothing in common with it.
  def fresh
    @session = nil
    call("Target.disposeBrowserContext", browserContextId: @context) if @context
    @requests = []
    @complaints = []
    @context = call("Target.createBrowserContext")["browserContextId"]
    target = call("Target.createTarget", url: "about:blank", browserContextId: @context)["targetId"]
    @session = call("Target.attachToTarget", targetId: target, flatten: true)["sessionId"]
    %w[Page Network Runtime Log].each { |domain| call("#{domain}.enable") }
    window(*WINDOW)
  end

  # Makes the window so wide and high, in CSS pixels.
  def window(width, height, ratio: 1, mobile: false)
    call("Emulation.setDeviceMetricsOverride", width: width, height: height, deviceScaleFactor: ratio, mobile: mobile)
  end

  # @param scheme [String] "light" or "dark": what the page is told that its reader likes
  def colors(scheme) = call("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])

  # Opens a file, or an address of this machine, and waits until its script says how it went.
  #
  # @param before [String, nil] JavaScript that runs before the page's own
  # @return [String] "drawn" or "failed"
  def open(path, before: nil, ready: "document.documentElement.dataset.map")
    call("Page.addScriptToEvaluateOnNewDocument", source: before) if before
    visit(path.start_with?("http:") ? path : "file://#{path}", ready: ready)
  end

  # Opens an address, and waits until it is loaded.
  #
  # @param address [String] file: or http:, of this machine
  # @param ready [String] JavaScript that is true once the page is drawn
  # @return [Object] what that gave
  def visit(address, ready: "true")
    call("Page.navigate", url: address)
    evaluate(<<~JAVASCRIPT)
      new Promise(function (done) { (function look() {
        var state = document.readyState === "complete" && #{ready};
        if (state) { done(state); } else { setTimeout(look, 20); } }()); })
    JAVASCRIPT
  end

  # @param script [String] an expression; promises are waited for
  # @return [Object] its value as JSON has it
  def evaluate(script)
    result = call("Runtime.evaluate", expression: script, awaitPromise: true, returnByValue: true)
    raise "in the page: #{result["exceptionDetails"].dig("exception", "description") || result["exceptionDetails"]["text"]}" if result.key?("exceptionDetails")

    result.dig("result", "value")
  end

  # Until an expression is true; it gives up when that does not come.
  def wait(condition) = evaluate("new Promise(function (done) { (function look() { if (#{condition}) done(true); else setTimeout(look, 20); }()); })")

  # @param id [String] of an element
  def text(id) = evaluate("document.getElementById(#{id.dump}).textContent")

  # @param elements [String] their selector
  def texts(elements) = evaluate("Array.from(document.querySelectorAll(#{JSON.generate(elements)}), function (one) { return one.textContent; })")

  # Writes into a field as if by hand.
  #
  # @param event [String] "change" for a list
  def fill(id, value, event: "input")
    evaluate("(function () { var one = document.getElementById(#{id.dump}); one.value = #{JSON.generate(value)}; one.dispatchEvent(new Event(#{event.dump})); }())")
  end

  # @param kind [String] mouseMoved, mousePressed, mouseReleased, mouseWheel
  def mouse(kind, left, top, **more) = call("Input.dispatchMouseEvent", type: kind, x: left, y: top, **more)

  def drag(from, to)
    mouse("mousePressed", *from, button: "left", buttons: 1, clickCount: 1)
    mouse("mouseMoved", *to, button: "left", buttons: 1)
    mouse("mouseReleased", *to, button: "left", clickCount: 1)
  end

  def key(name) = %w[keyDown keyUp].each { |kind| call("Input.dispatchKeyEvent", type: kind, key: name, text: (name if kind == "keyDown" && name.size == 1)) }

  def screenshot(path) = File.binwrite(path, call("Page.captureScreenshot", format: "png")["data"].unpack1("m"))

  def quit
    Process.kill(:KILL, -@pid)
    Process.wait(@pid)
    [@in, @out].each(&:close)
    FileUtils.remove_entry(@folder)
  end

  private

  def call(method, **parameters)
    @number += 1
    @out.write(JSON.generate({ id: @number, method: method, params: parameters.compact, sessionId: @session }.compact), "\0")
    loop do
      message = receive
      note(message) if message.key?("method")
      next unless message["id"] == @number
      raise "#{method}: #{message["error"]["message"]}" if message.key?("error")

      return message["result"]
    end
  end

  def receive
    until (past = @buffer.index("\0"))
      more = @in.wait_readable(PATIENCE_SECONDS) && @in.read_nonblock(1 << 20, exception: false)
      raise "the browser #{more.nil? ? "has ended" : "does not answer"}: #{File.read(@log).lines.last(5).join}" unless more.is_a?(String)

      @buffer << more
    end
    JSON.parse(@buffer.slice!(0..past).chop.force_encoding(Encoding::UTF_8))
  end

  def note(message)
    return if message["sessionId"] != @session

    fields = message["params"]
    case message["method"]
    when "Network.requestWillBeSent" then @requests << fields.dig("request", "url")
    when "Runtime.exceptionThrown" then @complaints << fields.dig("exceptionDetails", "exception", "description")
    when "Runtime.consoleAPICalled" then @complaints << fields["args"].map { |one| one["value"] }.join(" ") if %w[error warning].include?(fields["type"])
    when "Log.entryAdded" then @complaints << fields.dig("entry", "text")
    end
  end
end
