# frozen_string_literal: true

# A program that answers as an agent does, for answers that a real one does not give.
#
#   ruby fake_agent.rb FILE...    each answer is the next file's content; "-": it ends instead; the last one goes on. FILE.asked
#                                 appears once it has answered. Asked for its profile, it says that it has none
require "socket"

server = UNIXServer.new("\0culet-agent/#{Process.pid}/test")
puts "up"
$stdout.flush
files = ARGV.dup
loop do
  socket = server.accept
  next socket.write("ok 39\n", "running=0 sample_bytes=524288 malloc=1\n") if socket.gets.to_s.include?(" profile ")

  path = files.size > 1 ? files.shift : files.first
  exit!(0) if path == "-"
  answer = File.binread(path)
  socket.write("ok #{answer.bytesize}\n", answer)
  File.write("#{path}.asked", "")
rescue Errno::EPIPE, Errno::ECONNRESET
  nil # culet has read enough
ensure
  socket&.close
end
