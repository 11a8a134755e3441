# frozen_string_literal: true

# A program that answers as the agent of a profiled process does, for answers that a real one does not give.
#
#   ruby fake_agent.rb on|off STREAM    STREAM: a file with what it answers to `write`; "-": it ends instead
require "socket"

running = ARGV[0] == "on"
server = UNIXServer.new("\0culet-agent/#{Process.pid}/test")
puts "up"
$stdout.flush
loop do
  socket = server.accept
  action = socket.gets[/action=(\w+)/, 1]
  running = action == "start" if %w[start stop].include?(action)
  exit!(0) if action == "write" && ARGV[1] == "-"
  status = "running=#{running ? 1 : 0} sample_bytes=524288 malloc=1\n"
  answer = action == "write" ? File.binread(ARGV[1]) : status
  socket.write("ok #{answer.bytesize}\n#{answer}")
  socket.close
end
