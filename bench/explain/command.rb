# frozen_string_literal: true

require "json"
require "culet/system/subprocess"

# Runs culet explain on a process.
module ExplainCommand
  # After the watch, which takes up to twice its time on a busy machine.
  PATIENCE_SECONDS = 180

  # @param seconds [Integer] of watching
  # @param culet [String] the command line
  # @return [Array(Hash, Integer)] the document, and its bytes
  # @raise [RuntimeError] when there is none
  def self.call(pid, seconds:, culet: "#{Bench::ROOT}/bin/culet")
    words = [culet, "explain", pid.to_s, "--json", "--for", "#{seconds}s"]
    text, status = Culet::Subprocess.run(*words, chdir: Bench::ROOT, seconds: (2 * seconds) + PATIENCE_SECONDS)
    json = text[/^\{.*\}$/m]
    raise "culet explain: #{text.lines.last&.strip || "it did not end"}" unless status&.success? && json

    [JSON.parse(json), json.bytesize]
  rescue JSON::ParserError
    raise "culet explain: its document is not JSON"
  end
end
