# frozen_string_literal: true

require "socket"
require "uri"

# A server that stands in for Pyroscope: it keeps the requests it got and answers what the test says.
class PyroscopeServer
  Request = Struct.new(:path, :query, :headers, :body)

  OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

  # @return [Queue] of Request
  attr_reader :requests

  # @yieldparam count [Integer] requests so far
  # @yieldparam socket [TCPSocket]
  # @yieldreturn [String, nil] the answer; nil: the block has answered itself
  def initialize(&answer)
    @answer = answer || ->(_, _) { OK }
    @server = TCPServer.new("127.0.0.1", 0)
    @requests = Queue.new
    @thread = Thread.new { serve }
  end

  def address = "http://127.0.0.1:#{@server.addr[1]}"

  def close
    @thread.kill.join
    @server.close
  end

  private

  def serve
    (1..).each do |count|
      socket = @server.accept
      request = read(socket)
      @requests << request if request
      answer = @answer.call(count, socket)
      socket.write(answer) if answer
    rescue SystemCallError
      nil # the client is gone
    ensure
      socket&.close
    end
  end

  def read(socket)
    path, query = socket.gets.to_s.split[1].to_s.split("?", 2)
    headers = {}
    while (line = socket.gets) && line != "\r\n"
      name, value = line.chomp.split(": ", 2)
      headers[name.downcase] = value
    end
    Request.new(path, URI.decode_www_form(query.to_s).to_h, headers, socket.read(headers["content-length"].to_i))
  end
end
