# frozen_string_literal: true

require "test_helper"
require "socket"
require "culet/system/clock"

# The site as bin/site builds and serves it, once for all tests.
class Site
  # The first build compiles a gem and makes the examples, which take minutes on a busy machine.
  PATIENCE_SECONDS = 1500

  # @return [Site] the one that all tests share
  def self.shared = @shared ||= new.tap { |site| Minitest.after_run { site.stop } }

  # @return [String] the folder of its files; its address, without a slash at the end
  attr_reader :folder, :address

  def initialize
    @temporary = Dir.mktmpdir("culet-site")
    @folder = "#{@temporary}/site"
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    reader, writer = IO.pipe
    @pid = spawn(TestHelper::NEUTRAL, "#{TestHelper::ROOT}/bin/site", "--out", @folder, "--base", "/culet",
                 "--serve", port.to_s, in: File::NULL, out: writer, err: "#{@temporary}/log", pgroup: true)
    writer.close
    @address = reader.wait_readable(PATIENCE_SECONDS) && reader.gets&.chomp&.delete_suffix("/")
    reader.close
    wait_until_served(port)
  end

  # @return [Array<String>] paths of its pages, from its top
  def pages
    Dir.glob("**/*.html", base: folder).sort.map { |file| "/#{file.sub(%r{(?<=\A|/)index\.html\z}, "")}" }
  end

  def stop
    Process.kill(:KILL, -@pid)
    Process.wait(@pid)
    FileUtils.remove_entry(@temporary)
  end

  private

  def wait_until_served(port)
    raise "bin/site failed:\n#{File.read("#{@temporary}/log")}" unless address

    deadline = Culet::Clock.now + 120
    begin
      TCPSocket.open("127.0.0.1", port, &:close)
    rescue Errno::ECONNREFUSED
      raise "nothing listens:\n#{File.read("#{@temporary}/log")}" if Culet::Clock.now > deadline

      sleep 0.1
      retry
    end
  end
end
