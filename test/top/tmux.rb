# frozen_string_literal: true

require "culet/system/clock"

# A terminal: tmux without a client, with an interactive shell in it.
class Tmux
  PATIENCE_SECONDS = 60
  STEP_SECONDS = 0.03
  SETTINGS = "set -g status off\nset -g escape-time 0\nset -g default-terminal screen-256color\nset -g history-limit 200\n"

  # @param folder [String] for its socket, and what the shell writes
  # @param rows [Integer]
  def initialize(folder, columns:, rows:, environment: {})
    @socket = File.join(folder, "tmux")
    settings = File.join(folder, "tmux.conf")
    File.write(settings, SETTINGS)
    File.write("#{folder}/bashrc", "PS1='ready> '\n")
    system({ "TMUX" => nil, "LC_ALL" => "C.UTF-8", **environment }, "tmux", "-S", @socket, "-f", settings, "new-session", "-d", "-x", columns.to_s,
           "-y", rows.to_s, "exec bash --rcfile #{folder}/bashrc -i", exception: true)
    wait_for(/^ready>/)
  end

  # @param text [String] typed as it is, and Enter behind it
  def enter(text)
    tmux("send-keys", "-l", text)
    press("Enter")
  end

  # @param keys [Array<String>] by tmux's names: "q", "PageDown", "C-z"
  def press(*keys) = tmux("send-keys", *keys)

  # @return [String] what is on the screen
  def screen = tmux("capture-pane", "-p")

  # @return [String] the same with its styles
  def styled = tmux("capture-pane", "-p", "-e")

  # @return [Array<String>] "1" and "0": alternate screen, cursor visible, lines wrapped
  def modes = tmux("display-message", "-p", '#{alternate_on} #{cursor_flag} #{wrap_flag}').split

  def resize(columns:, rows:) = tmux("resize-window", "-x", columns.to_s, "-y", rows.to_s)

  # @param pattern [Regexp]
  # @yield instead of the pattern, whether the screen is as it must be
  # @return [String] the screen once it matches
  def wait_for(pattern = nil)
    deadline = Culet::Clock.now + PATIENCE_SECONDS
    loop do
      text = screen
      return text if pattern ? text.match?(pattern) : yield(text)
      raise Minitest::Assertion, "#{pattern.inspect} did not appear on the terminal:\n#{text}" if Culet::Clock.now > deadline

      sleep(STEP_SECONDS)
    end
  end

  def close = tmux("kill-server")

  private

  def tmux(*words)
    out, status = Open3.capture2e("tmux", "-S", @socket, *words)
    raise "tmux #{words.first}: #{out}" unless status.success?

    out.force_encoding(Encoding::UTF_8)
  end
end
