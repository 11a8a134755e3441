# frozen_string_literal: true

require "culet/allocators"
require "culet/system/clock"
require "culet/tools/profile"
require "culet/tools/profile/live"
require "json"
require "net/http"
require "open3"
require_relative "profile_work"
require_relative "server_process"

module Soak
  # One run of the server of mixed work (profile_server.rb) under the memory profile: requests whose answers are checked,
  # `culet profile` from outside, and the account of the samples of each reading. Without the profile it is the control
  # run, which tells whose fault a crash is.
  class ProfileRun
    CLIENTS = 6
    ANSWER_SECONDS = 180 # GC.stress is on for a while
    READ_SECONDS = 10    # between two readings, at most
    READINGS = 8         # of a run, at least
    BUSY = /did not run Ruby code in time|is busy/ # a reading that a busy server refuses
    REFUSALS = 5 # in a row, at most
    REPORT_SECONDS = 60
    DISTANCES = [16, 32, 64].map { |kib| kib << 10 }.freeze
    ROOT = File.expand_path("../..", __dir__)
    CULET = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/culet"].freeze
    private_constant :CLIENTS, :ANSWER_SECONDS, :READ_SECONDS, :READINGS, :BUSY, :REFUSALS, :REPORT_SECONDS, :DISTANCES, :ROOT, :CULET

    # requests: by kind; samples, lost: of all profiles from start to end; failures: sentences
    Result = Struct.new(:requests, :readings, :profiles, :samples, :lost, :failures, keyword_init: true)

    # @param minutes [Numeric] how long the requests go on
    # @param profile [Boolean] whether there is a profile
    # @param ractors [Boolean] whether there are Ractors
    # @param options [Array<String>] of Ruby, e.g. --yjit
    # @param errors [String] the file for the server's error output
    # @param log [IO] a line per minute
    def initialize(minutes:, profile:, ractors:, options:, errors:, log:)
      @seconds = minutes * 60
      @profile = profile
      @mix = ProfileWork.mix(ractors: ractors)
      @log = log
      @server = ServerProcess.new(Culet::Allocators.parse("culet"), log: log, script: File.expand_path("profile_server.rb", __dir__),
                                                                    options: options, environment: environment(ractors))
      @errors = errors
      @requests = Hash.new(0)
      @readings = @refusals = @profiles = @samples = @lost = 0
      @failures = []
      @lock = Mutex.new
    end

    # @return [Result]
    # @raise [Culet::Error] where the server's gems cannot be had
    def call
      @server.start
      fail_with(@server.objection)
      @began = Culet::Clock.now
      threads = Array.new(CLIENTS) { |number| thread { request(number) } }
      threads << thread { read } if @profile
      report until over?
      threads.each(&:join)
      stop
      Result.new(requests: @requests, readings: @readings, profiles: @profiles, samples: @samples, lost: @lost, failures: @failures)
    ensure
      @server.save_errors(@errors) if @errors
      @server.stop
    end

    private

    def environment(ractors)
      base = { "SOAK_RACTORS" => ractors ? "1" : "0" }
      return base unless @profile

      base.merge("CULET_PROFILE" => DISTANCES.first.to_s, "RUBYOPT" => "-r#{ROOT}/lib/culet/profile.rb")
    end

    def over? = @failures.any? || Culet::Clock.now - @began > @seconds

    def fail_with(sentence)
      @lock.synchronize { @failures << sentence } if sentence
    end

    def thread
      Thread.new do
        yield
      rescue StandardError => e
        fail_with("#{e.message} (#{e.class})")
      end
    end

    def report
      deadline = Culet::Clock.now + REPORT_SECONDS
      until over? || Culet::Clock.now > deadline
        fail_with(@server.ended)
        sleep(0.2)
      end
      @log.puts(format("soak: %<minutes>5.1f min, %<requests>d requests, %<readings>d readings, %<profiles>d profiles, " \
                       "%<samples>d samples, %<lost>d without room", minutes: (Culet::Clock.now - @began) / 60, requests: @requests.values.sum,
                                                                      readings: @readings, profiles: @profiles, samples: @samples, lost: @lost))
    end

    # ---- requests ----

    def request(client)
      random = Random.new(client)
      until over?
        kind = @mix[random.rand(@mix.size)]
        number = random.rand(1_000_000)
        answer = get("#{kind}/#{number}")
        fail_with("#{kind} #{number} was answered with #{answer}") if answer != "200 #{ProfileWork.answer(number)}"
        @lock.synchronize { @requests[kind] += 1 }
      end
    end

    # A connection for each request: Puma 8.0.2 may lose header lines of those that are kept.
    def get(path)
      uri = URI("#{@server.target}#{path}")
      answer = Net::HTTP.start(uri.host, uri.port, read_timeout: ANSWER_SECONDS, max_retries: 0) { |http| http.get(uri.path) }
      "#{answer.code} #{answer.body}"
    rescue SystemCallError, IOError, Timeout::Error => e
      sleep(0.5)
      ended = @server.ended and return ended
      "#{e.class}: #{e.message}; #{threads_of(@server.pid)}"
    end

    # What a process that hangs waits for.
    def threads_of(pid)
      Dir["/proc/#{pid}/task/*"].map do |task|
        %w[comm wchan].map { |name| File.read(File.join(task, name)).strip }.join(": ")
      end.tally.map { |text, count| "#{count} #{text}" }.join(", ")
    rescue SystemCallError => e
      e.message
    end

    # ---- readings ----

    # The profile from the start is read a few times, then ended; `culet profile --for` starts and ends one; then the next.
    def read
      DISTANCES.cycle.each_with_index do |distance, number|
        3.times { pause { take } }
        control("stop")
        conclude
        pause { culet("--for", "2s", "--sample", (distance / 2).to_s) }
        control("start/#{distance}")
        break if over?

        @profiles = number + 1
      end
    end

    def pause
      deadline = Culet::Clock.now + [READ_SECONDS, @seconds / READINGS].min
      sleep(0.2) until over? || Culet::Clock.now > deadline
      yield unless over?
    end

    def control(path)
      answer = get(path)
      fail_with("#{path} was answered with #{answer}") unless over? || answer == "200 done"
    end

    def culet(*words)
      out, err, status = Open3.capture3(*CULET, "profile", @server.pid.to_s, "--json", *words)
      return refused("culet profile #{words.join(" ")} failed: #{err.strip}") unless status.success?

      JSON.parse(out)
      accepted
    end

    # @return [Culet::Profile::Recording, nil]
    def take
      text = Culet::Profile::Live.new(@server.pid).read
      accepted
      recording = Culet::Profile::Recording.new(text, name: "the server")
      check(recording)
      recording
    rescue Culet::Error => e
      refused("the profile cannot be read: #{e.message}")
    end

    def accepted
      @readings += 1
      @refusals = 0
    end

    # GC.stress makes the server slow, and the machine may be.
    #
    # @return [nil]
    def refused(sentence)
      @refusals += 1
      fail_with(sentence) unless over? || (sentence.match?(BUSY) && @refusals <= REFUSALS)
    end

    def conclude
      recording = take or return
      @samples += recording.account.added
      @lost += recording.lost
    end

    # Samples that were added = live + freed, by the sites and by the counters.
    def check(recording)
      account = recording.account
      allocated, live = %i[allocated live].map { |view| recording.sites.sum { |site| site.sums[view]&.samples.to_i } }
      return if account.added == allocated && account.added == live + account.freed && recording.lost.zero?

      fail_with("the samples do not add up: #{account.added} added, #{allocated} of all sites, #{live} live, " \
                "#{account.freed} freed, #{recording.lost} without room")
    end

    def stop
      ended = @server.ended and return fail_with(ended)
      status = @server.finish
      fail_with("the server did not end: #{threads_of(@server.pid)}") unless status
      fail_with("the server ended with #{status}") unless status.nil? || status.success? || status.termsig == Signal.list["TERM"]
    end
  end
end
