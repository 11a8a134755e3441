# frozen_string_literal: true

# A program that answers as an agent does, for answers that a real one does not give.
#
#   ruby fake_agent.rb on|off FILE...    whether it has a profile; each answer is the next file's content, "-": it ends instead;
#                                        the last one goes on. FILE.asked appears once it has answered
require "socket"

running = ARGV.shift == "on"
files = ARGV.dup
server = UNIXServer.new("\0culet-agent/#{Process.pid}/test")
puts "up"
$stdout.flush
loop do
  socket = server.accept
  question = socket.gets.to_s
  if question.include?(" profile ") && !question.include?("action=write")
    running = question.include?("action=start") if question.match?(/action=(?:start|stop)/)
    answer = "running=#{running ? 1 : 0} sample_bytes=524288 malloc=1\n"
  else
    path = files.size > 1 ? files.shift : files.first
    exit!(0) if path == "-"
    answer = File.binread(path)
  end
  socket.write("ok #{answer.bytesize}\n", answer)
  File.write("#{path}.asked", "") if path
rescue Errno::EPIPE, Errno::ECONNRESET
  nil # culet has read enough
ensure
  socket&.close
end
