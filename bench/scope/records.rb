# frozen_string_literal: true

# usage: records.rb MEGABYTES THREADS
#
# Fills a Ruby heap for the reader: threads keep records of strings, hashes and arrays, and drop some. Prints "ready",
# and waits to be killed.
megabytes, threads = ARGV.map(&:to_i)

# Keeps and drops records of one thread.
class Records
  def initialize(seed)
    @random = Random.new(seed)
    @kept = []
  end

  def add(count)
    count.times { @kept << record }
    (count / 10).times { @kept.delete_at(@random.rand(@kept.size)) }
  end

  private

  def record
    { "id" => @random.rand(1 << 20), "name" => "user #{@random.rand(1_000_000)} of the system",
      "tags" => Array.new(@random.rand(8)) { |n| "tag-#{n}-#{@random.rand(100)} of some length" }, "body" => body }
  end

  def body = "x" * (@random.rand(20).zero? ? @random.rand(20_000) : @random.rand(600))
end

# Bytes in memory.
def resident = File.read("/proc/self/statm").split[1].to_i * 4096

# Most of it is kept: collections would only take time.
GC.disable
all = Array.new(threads) { |seed| Records.new(seed) }
all.map { |records| Thread.new { records.add(1000) while resident < megabytes << 20 } }.each(&:join)
GC.enable
GC.start
$stdout.puts("ready")
$stdout.flush
sleep
