# frozen_string_literal: true

# What the programs of known cause have in common: each serves a load of its own at a known pace, prints "ready PID" when
# what it is for has begun, and goes on until SIGTERM, or until its parent ends. PID is the root of the processes that are
# to be explained.
#
# PROGRAM_IDLE: without the requests that each process serves besides, so that no collection may run for minutes.
# PROGRAM_FACTS: a file that each process appends its figures to, several times a second, for the test of the programs.
require "rbconfig"
require "socket"

module Load
  MEGABYTE = 1_000_000
  FACTS = ENV.fetch("PROGRAM_FACTS", nil)
  IDLE = ENV.key?("PROGRAM_IDLE")
  START_SECONDS = 120
  # Enough for each worker of a cluster to have its share.
  FIRST_REQUESTS = 60

  class << self
    # Repeats the block at a pace until the program is ended. Call it in the last line.
    def run(every:, &block)
      announce
      repeat(every: every, &block)
    end

    # Forks workers that each run the block, and waits until the program is ended. It is ready when each of them has come to
    # what it repeats.
    def workers(count)
      ready, @starts = IO.pipe
      pids = Array.new(count) { |number| fork { as_worker(number) { yield number } } }
      trap("TERM") { pids.each { |pid| stop(pid) } && exit!(0) }
      @starts.close
      ready.read(count)
      @starts = nil
      print_ready(Process.pid)
      repeat(every: 0.2) { nil }
      pids.each { |pid| stop(pid) }
    end

    # Starts threads that each repeat the block at a pace.
    def threads(count, every:)
      Array.new(count) { |number| Thread.new { loop { yield(number) || true and sleep(every) } } }
    end

    # A delay is made up for, of up to a second.
    def repeat(every:)
      parent = Process.ppid
      due = now
      @starts&.write(".")
      @starts = nil
      while Process.ppid == parent
        yield
        due = [due + every, now - 1].max
        sleep([due - now, 0].max)
      end
    end

    # The rest of the program is a server in a process of its own, and this one its client, which asks for one path after
    # the other. Returns in the server alone.
    #
    # @param before [Array<String>] paths that are asked for first
    # @param command [Array<String>] words that start the server
    def client(paths, every:, before: [], command: [RbConfig.ruby, $PROGRAM_NAME])
      return if ENV["PROGRAM_PORT"]

      port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      server = Process.spawn({ "PROGRAM_PORT" => port.to_s }, *command, out: File::NULL)
      supervise(server)
      await { get(port, "/up") }
      before.each { |path| get(port, path) }
      paths = paths.cycle
      FIRST_REQUESTS.times { get(port, paths.next) } if before.empty?
      print_ready(server)
      repeat(every: every) { get(port, paths.next) }
      stop(server)
      exit!(0)
    end

    # Serves a Rack application in Puma. Call it in the last line.
    def puma(app, threads: 4, workers: 0, preload: true)
      require "puma"
      require "puma/configuration"
      require "puma/launcher"
      configuration = Puma::Configuration.new do |settings|
        settings.bind("tcp://127.0.0.1:#{ENV.fetch("PROGRAM_PORT")}")
        settings.threads(threads, threads)
        settings.workers(workers)
        settings.preload_app!(preload)
        settings.app(app) if app
        yield settings if block_given?
        settings.before_worker_boot { Load.enter_process } if workers.positive?
      end
      enter_process unless workers.positive?
      Puma::Launcher.new(configuration, log_writer: Puma::LogWriter.null).run
    end

    # Starts Sidekiq with a Redis of its own, and enqueues jobs of one class at a pace. Returns in Sidekiq alone.
    #
    # @param first [Boolean] whether to wait until the first job calls `first_done`
    def sidekiq(job, every:, threads: 3, first: false)
      return Sidekiq.configure_server { |config| config.on(:startup) { Load.enter_process } } if ENV["PROGRAM_PORT"]

      require "tmpdir"
      require_relative "../servers/sidekiq/redis_server"
      folder = Dir.mktmpdir
      redis = RedisServer.new(folder)
      at_end { redis.stop && remove(folder) }
      words = ["-r", File.expand_path($PROGRAM_NAME), "-c", threads.to_s, "-t", "1"]
      done = File.join(folder, "done")
      server = Process.spawn({ "PROGRAM_PORT" => "0", "REDIS_URL" => redis.url, "PROGRAM_DONE" => done }, RbConfig.ruby, "-rbundler/setup",
                             "-e", "load Gem.bin_path('sidekiq', 'sidekiq')", "--", *words, out: File::NULL, err: File::NULL)
      supervise(server)
      jobs = 0
      enqueue = -> { push(redis.url.delete_prefix("unix://"), job, jobs += 1) }
      enqueue.call
      await { queue_is_empty?(redis.url.delete_prefix("unix://")) && (!first || File.exist?(done)) }
      print_ready(server)
      repeat(every: every) { enqueue.call }
      stop(server)
      finish
    end

    def first_done = File.write(ENV.fetch("PROGRAM_DONE"), "")

    # What a request makes and forgets.
    def work(number)
      params = { id: number, name: "customer #{number}", tags: Array.new(10) { |index| "tag #{index}" } }
      params.map { |key, value| "#{key}=#{value}" }.join("&") * 4
    end

    # @return [Array<String>] of that size together, each too long for a slot of Ruby 4.1
    def texts(megabytes) = Array.new(megabytes * 800) { |number| "text #{number} ".ljust(1_200, "x") }

    # @return [String] an extension in C whose Leaking.parse loses so many bytes of malloc
    def leaking
      require "tmpdir"
      require_relative "../leaking_extension"
      folder = Dir.mktmpdir
      LeakingExtension.build(folder).tap { |library| require library }
    ensure
      remove(folder)
    end

    # In each process of the program.
    def enter_process
      Thread.new { loop { serve_a_little } } unless IDLE
      return unless FACTS

      require_relative "facts"
      Facts.start(FACTS)
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # Garbage of requests, for a collection every few seconds; 2 % of a core.
    def serve_a_little
      50.times { |number| work(number) }
      sleep(0.04)
    end

    def announce
      enter_process
      trap("TERM") { exit!(0) }
      print_ready(Process.pid)
    end

    def print_ready(pid)
      $stdout.puts("ready #{pid}")
      $stdout.flush
    end

    def as_worker(number)
      trap("TERM") { exit!(0) }
      srand(number)
      enter_process
      yield
    ensure
      exit!(0)
    end

    def supervise(server)
      at_end { stop(server) }
      trap("TERM") { finish }
    end

    def at_end(&block) = (@ends ||= []).unshift(block)

    def finish
      @ends.each(&:call)
      exit!(0)
    end

    def stop(pid)
      Process.kill("TERM", pid)
      200.times { Process.wait(pid, Process::WNOHANG) ? (return true) : sleep(0.05) }
      Process.kill("KILL", pid)
      Process.wait(pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil # it has ended
    end

    def remove(folder)
      Dir.children(folder).each { |name| File.unlink(File.join(folder, name)) }
      Dir.rmdir(folder)
    end

    def await
      (START_SECONDS * 20).times do
        return if yield

        sleep(0.05)
      end
      finish
    end

    def get(port, path)
      TCPSocket.open("127.0.0.1", port) do |socket|
        socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        socket.read.start_with?("HTTP/1.1 200")
      end
    rescue SystemCallError, IOError
      false
    end

    def redis(socket, *words)
      UNIXSocket.open(socket) do |connection|
        connection.write("*#{words.size}\r\n#{words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join}")
        connection.gets
      end
    end

    def push(socket, job, number)
      now = Time.now.to_f
      redis(socket, "LPUSH", "queue:default",
            "{\"class\":\"#{job}\",\"args\":[#{number}],\"jid\":\"#{format("%024x", number)}\",\"queue\":\"default\",\"retry\":false," \
            "\"created_at\":#{now},\"enqueued_at\":#{now}}")
    end

    def queue_is_empty?(socket) = redis(socket, "LLEN", "queue:default") == ":0\r\n"
  end
end
