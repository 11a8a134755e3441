# frozen_string_literal: true

require "socket"
require "culet/system/clock"
require "culet/tools/compare/bundle"

# Processes of different kinds to look at, each up and idle when it is yielded.
module RealProcesses
  # Threads that have made and dropped garbage, and stay.
  THREADS = <<~RUBY
    done = Queue.new
    KEPT = Array.new(8) do |n|
      Thread.new do
        kept = Array.new(20_000) { |i| "x" * (60 + (i * 7 + n) % 500) }
        Thread.current[:kept] = kept.each_slice(9).map(&:first)
        done << true
        sleep
      end
    end
    8.times { done.pop }
    GC.start
    puts :up; $stdout.flush; sleep
  RUBY

  FIBERS = <<~RUBY
    FIBERS = Array.new(200) { Fiber.new { text = "x" * 100; Fiber.yield; text } }.each(&:resume)
    puts :up; $stdout.flush; sleep
  RUBY

  JIT = <<~RUBY
    def sum(n) = (1..n).sum { |i| i * 3 % 7 }
    5_000.times { sum(10) }
    puts :up; $stdout.flush; sleep
  RUBY

  # A worker that shares its parent's memory and has written a part of it.
  WORKER = <<~RUBY
    WORDS = Array.new(100_000) { |i| "word \#{i} " * 3 }
    child = fork { WORDS.each_slice(5) { |words| words.first << "!" }; $stdout.puts(Process.pid); $stdout.flush; sleep }
    Process.wait(child)
  RUBY

  C = <<~C
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    static void *fill(void *kept)
    {
      for (int i = 0; i < 30000; i++) {
        char *block = malloc(40 + i % 3000);
        memset(block, 1, 40 + i % 3000);
        if (i % 3 == 0) free(block); else ((char **)kept)[i] = block;
      }
      return kept;
    }
    int main(void)
    {
      static char *kept[4][30000];
      pthread_t threads[4];
      char *large = malloc(20 << 20), *read_only = calloc(1, 30 << 20), sum = 0;
      memset(large, 1, 10 << 20);
      for (int i = 0; i < 30 << 20; i += 4096) sum += read_only[i];
      for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, fill, kept[i]);
      for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
      for (int i = 0; i < 30000; i += 2) free(kept[1][i]);
      printf("up %d %d\\n", sum, large[5]);
      fflush(stdout);
      pause();
      return 0;
    }
  C

  PYTHON = "import sys, time\nkept = [str(i) * 5 for i in range(100000)]\nprint('up', flush=True)\ntime.sleep(1000)"
  PERL = '$| = 1; my @kept = map { "x" x ($_ % 300) } 1..50000; print "up\n"; sleep'
  SQL = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000) " \
        "insert into t select i, hex(randomblob(40)) from n; create index x on t(b);\n.print up\n"

  RUBY = [RbConfig.ruby, "--disable-gems"].freeze

  # name => [command, environment, what is written to its standard input]
  def processes
    {
      "idle ruby" => [[*RUBY, "-e", TestHelper::WAITING]],
      "ruby with gems" => [[RbConfig.ruby, "-rjson", "-rset", "-ropenssl", "-e", TestHelper::WAITING]],
      "ruby with threads" => [[*RUBY, "-e", THREADS]],
      "ruby with threads in two arenas" => [[*RUBY, "-e", THREADS], { "MALLOC_ARENA_MAX" => "2" }],
      "ruby with fibers" => [[*RUBY, "-e", FIBERS]],
      **(jit ? { "ruby with a JIT" => [[*RUBY, jit, "-e", JIT]] } : {}),
      "ruby on culet" => [[*RUBY, "-e", THREADS], on("culet")],
      "ruby on jemalloc" => [[*RUBY, "-e", THREADS], on("jemalloc")],
      "ruby on tcmalloc" => [[*RUBY, "-e", THREADS], on("tcmalloc")],
      "ruby on mimalloc" => [[*RUBY, "-e", THREADS], on("mimalloc")],
      "a forked worker" => [[*RUBY, "-e", WORKER]],
      "a C program with threads" => [[compile_c(File.join(scratch, "program"), C, "-O1", "-pthread")]],
      "python" => [["/usr/bin/python3", "-c", PYTHON]],
      "perl" => [["perl", "-e", PERL]],
      "a shell" => [["sh", "-c", "echo up; read -r line"]],
      "bash" => [["bash", "-c", "x=$(seq 20000); echo up; read -r line"]],
      "sqlite" => [["sqlite3"], {}, SQL],
      "sleep" => [["sh", "-c", "echo up; exec sleep 1000"]]
    }
  end

  # Yields the number of a process that is up and waits.
  def with_process(command, environment = {}, input = nil)
    with_fed(*command, env: TestHelper::NEUTRAL.merge(environment)) do |pid, output, feed|
      feed.write(input) if input
      assert output.wait_readable(TestHelper::PATIENCE_SECONDS), "#{command.first} printed nothing"
      line = output.gets
      settle(pid)
      yield line.match?(/\A\d+\n\z/) ? line.to_i : pid
    end
  end

  # Puma with an application of a few lines, after some requests.
  def with_puma
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    environment = bundle.environment.merge("PORT" => port.to_s, "CULET_SCALE" => "0.2")
    pid = spawn(TestHelper::NEUTRAL.merge(environment), RbConfig.ruby, "-rbundler/setup", "#{TestHelper::ROOT}/workloads/rack.rb", in: File::NULL, pgroup: true)
    60.times { |turn| answer(port, patient: turn.zero?) }
    settle(pid)
    yield pid
  ensure
    end_started(pid) if pid
  end

  private

  # MJIT's code lies in libraries.
  #
  # @return [String, nil] what switches a JIT on; a Ruby that was built without one warns, and runs
  def jit
    @jit ||= IO.popen([*RUBY, "--yjit", "-e", "print RUBY_DESCRIPTION"], err: File::NULL, &:read).include?("+YJIT") ? "--yjit" : nil
  end

  def bundle
    Culet::Compare::Bundle.new(name: "rack", gemfile: "#{TestHelper::ROOT}/workloads/rack/Gemfile").tap { |gems| gems.install(log: $stderr) }
  end

  def answer(port, patient:)
    deadline = Culet::Clock.now + TestHelper::PATIENCE_SECONDS
    socket = TCPSocket.new("127.0.0.1", port)
    socket.write("GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    assert_match(%r{\AHTTP/1\.1 200}, socket.read)
  rescue Errno::ECONNREFUSED
    sleep 0.1
    retry if patient && Culet::Clock.now < deadline
    raise
  ensure
    socket&.close
  end

  # Waits until all its threads sleep and its memory stands still.
  def settle(pid)
    before = nil
    2_000.times do
      states = Dir["/proc/#{pid}/task/*/stat"].map { |file| File.read(file)[/\) (\w)/, 1] }
      now = File.read("/proc/#{pid}/smaps_rollup")
      return if states.all?("S") && now == before

      before = now
      sleep 0.05
    end
  end
end
