# frozen_string_literal: true

require_relative "../system/clock"
require_relative "command"
require_relative "process_arguments"
require_relative "../system/processes"
require_relative "../text/numbers"
require_relative "../text/size"
require_relative "../system/interruption"
require_relative "../tools/live"

module Culet
  module CLI
    # `culet live`: the memory of processes as a page that moves.
    class Live < Command
      include ProcessArguments

      EVERY_SECONDS = 1.0
      MOST_PORT = 65_535
      # Pages whose process has ended, or that were closed a moment ago, may connect again.
      GRACE_SECONDS = 3.0
      STEP_SECONDS = 0.2
      # Larger recordings take seconds to read.
      SLOW_BYTES = 10 << 20
      BANNER = "culet live [PID|NAME ... | FILE]"
      EXAMPLES = ["culet live                               every Ruby program of this machine",
                  "culet live puma                          a server by name, with its workers",
                  "culet live 4242 --port 8123              at a port of your choice",
                  "culet live puma --record puma.live       also record, until Ctrl-C",
                  "culet live puma --record a.live --for 1h  record for an hour",
                  "culet live puma.live                     play a recording"].freeze
      private_constant :EVERY_SECONDS, :MOST_PORT, :GRACE_SECONDS, :STEP_SECONDS, :SLOW_BYTES

      private

      def execute(words, *)
        check(words)
        @interruption = Culet::Interruption.new
        @interruption.watch { words.any? && file?(words.first) ? play(words.first) : watch(words) }
        EXIT_OK
      end

      def define(parser)
        paragraph(parser, "Serves a page on 127.0.0.1 that shows the memory of a process and its children, second by " \
                          "second, and prints its address. The address has a secret token. Ctrl-C ends the server.")
        define_names(parser, several: true)
        number(parser, "--port N", "port to listen on (default: a free one)", most: MOST_PORT)
        option(parser, "--record FILE", "write a recording to FILE, which `culet live FILE` plays")
        duration(parser, "--for TIME", "end after TIME (30s, 5m; default: at Ctrl-C, or with the last process)")
      end

      def check(words)
        files = words.select { |word| file?(word) }
        return if files.empty?
        raise UsageError, "give processes or one recording, not both" if words.size > 1
        raise UsageError, "--record needs processes; #{words.first} is a recording already" if options[:record]
      end

      def play(path)
        require_relative "../tools/live/recording"
        recording = Culet::Live::Recording.new(path)
        err.puts("culet: reading #{path}, #{Text::Size.human(File.size(path))}") if File.size(path) > SLOW_BYTES
        history = recording.history
        recording.notes.each { |note| err.puts("culet: #{path}: #{note}") }
        page = Culet::Live::Page.new(subject: recording.subject, every_seconds: recording.every_seconds,
                                     recording: true, notes: recording.notes)
        serve(history, page) { pause(GRACE_SECONDS) until over? }
      end

      def watch(words)
        require_relative "../model/sampler"
        require_relative "../tools/live/ticker"
        roots = living_roots(words)
        sampler = Culet::Live::Sampler.new(roots)
        observe(sampler, subject(words, roots))
      ensure
        sampler&.close
      end

      # The title of the page.
      def subject(words, roots)
        return "#{Processes::Identity.new(roots.first).title} (process #{roots.first})" if roots.size == 1

        words.empty? ? "all Ruby programs" : words.join(", ")
      end

      def observe(sampler, subject)
        history = Culet::Live::History.new
        recorder = recorder(subject)
        ticker = Culet::Live::Ticker.new(sampler, history: history, recorder: recorder, every_seconds: EVERY_SECONDS)
        raise Error, "the process has ended" unless ticker.begin

        page = Culet::Live::Page.new(subject: subject, every_seconds: EVERY_SECONDS)
        serve(history, page) { |server| follow(ticker, history, server) }
      ensure
        recorder&.close
        err.puts("culet: wrote #{recorder.path}: #{Text::Numbers.count(recorder.frames, "moment")}") if recorder
      end

      def recorder(subject)
        path = options[:record] or return
        Culet::Live::Recorder.new(path, subject: subject, every_seconds: EVERY_SECONDS)
      end

      def follow(ticker, history, server)
        ticker.follow { |seconds| pause(seconds) || over? }
        return if over?

        history.finish
        err.puts("culet: all processes have ended#{"; the page stays until it is closed" if server.pages.positive?}")
        linger(server)
      end

      # A page that is shown the end may be reloaded.
      def linger(server)
        left = (GRACE_SECONDS / STEP_SECONDS).round
        seen = left
        until over? || left.zero?
          pause(STEP_SECONDS)
          left = server.pages.positive? ? seen : left - 1
        end
      end

      # Ends early for a signal, or when the time of --for has passed.
      def pause(seconds)
        over?
        left = options.key?(:for) ? @started + options[:for] - Clock.now : seconds
        @interruption.wait([seconds, left].min.clamp(0, nil))
        nil
      end

      # Whether a signal came, or the time of --for has passed.
      def over?
        @started ||= Clock.now
        @interruption.requested? || (options.key?(:for) && Clock.now >= @started + options[:for])
      end

      def serve(history, page)
        require_relative "../tools/live/server"
        server = Culet::Live::Server.new(history: history, page: page, notes: err, port: options.fetch(:port, 0))
        server.start
        announce(server)
        yield server
      ensure
        server&.close
      end

      def announce(server)
        deliver(options[:json] ? JSON.generate({ "url" => server.url, "port" => server.port }) : server.url)
        out.flush
      end
    end
  end
end
