# frozen_string_literal: true

require "coverage"
require_relative "../culet"

module Culet
  # From now on this process, and those it forks, can be asked which of their compiled code never ran:
  # `culet require --unused PID`. Costs a little when code runs for the first time, and nothing afterwards (Ruby's oneshot
  # coverage); only code that is loaded after this is told. A program that measures its own coverage cannot have both.
  #
  # A line that has run is not heard again. So what ran while a program was loaded would count for good; with
  # CULET_UNUSED_FROM=asked a process follows only when it has been asked for the first time, or from Culet::Unused.follow
  # on, and what runs before that costs nothing and does not count.
  #
  # From the extension come:
  # - Culet::Unused.watch, fired, pieces, json, mark: see ext/culet/unused.c
  module Unused
    # A folder for the answers. Where it is set, a process also answers when it ends.
    VARIABLE = "CULET_UNUSED"
    # In which answers go otherwise; the user's number is put behind it.
    FOLDER = "/tmp/culet-unused-"
    # What counts: all that runs from the start on, or what runs after the first question.
    FROM = "CULET_UNUSED_FROM"
    FROM_WORDS = ["start", "asked"].freeze
    private_constant :FOLDER, :FROM, :FROM_WORDS

    # A Ruby thread's share of time is 100 ms, halved for each step below zero: requests are not to wait so long.
    PRIORITY = -3
    private_constant :PRIORITY

    class << self
      # @return [Boolean] whether it listens
      def start
        return false unless able?

        Coverage.setup(oneshot_lines: true)
        @since = from
        follow if @since == "start"
        listen
        at_exit { answer } if ENV[VARIABLE]
        true
      end

      # What runs counts from now on, in this process and in those it forks, unless it does already. Takes some tens of
      # milliseconds in a large program, because all code is gone through; compiled code of a JIT is dropped once.
      #
      # @return [Boolean] whether it did not before
      def follow
        return false if @following || @since.nil?

        @following = true
        watch
        Coverage.resume
        true
      end

      # Writes what this process knows by now to a file of its number in the folder.
      #
      # @return [String] the file
      # @raise [Culet::Error] when it cannot be written
      def write
        require_relative "atomic_file"
        require_relative "unused/census"
        prepare
        path = File.join(folder, "#{Process.pid}.json")
        AtomicFile.write(path, json(Census.new(since: @following ? @since : "now").to_h))
        path
      end

      private

      def able?
        sentence = if !Culet.native? then Native.missing_reason("culet.so")
                   elsif Coverage.running? then "coverage is being measured already"
                   elsif !Coverage.respond_to?(:setup) then "this Ruby cannot"
                   elsif !FROM_WORDS.include?(from) then "#{FROM}: '#{from}' is none of #{FROM_WORDS.join(", ")}"
                   end
        warn("culet: which code runs is not followed: #{sentence}") if sentence
        sentence.nil?
      end

      def from = ENV[FROM].to_s.then { |word| word.empty? ? FROM_WORDS.first : word }

      def folder = ENV[VARIABLE] || "#{FOLDER}#{Process.euid}"

      # In a folder that all may write to, nobody else may have put something there.
      def prepare
        Dir.mkdir(folder, 0o700)
      rescue Errno::EEXIST
        stat = File.lstat(folder)
        return if stat.directory? && stat.owned? && (stat.mode & 0o022).zero?

        raise Error, "#{folder} is not a folder of this user's alone"
      end

      # The highest real-time signal that nobody has a handler for. The work is a thread's: a handler may not wait for locks.
      def listen
        number = free_signal or return warn("culet: no real-time signal is free, so process #{Process.pid} cannot be asked which of its code runs")
        trap(number) do
          Thread.new { answer }.tap { |thread| thread.priority = PRIORITY }
        end
        mark("#{number}:#{folder}")
      rescue SystemCallError => e
        warn("culet: process #{Process.pid} cannot be asked which of its code runs: #{e.message}")
      end

      def answer
        write
        follow
      rescue Error, SystemCallError, NotImplementedError => e
        warn("culet: which code ran cannot be told: #{e.message}")
      end

      # As the kernel has it, so that handlers which are not Ruby's count too.
      def free_signal
        caught, ignored = File.read("/proc/self/status").scan(/^Sig(?:Cgt|Ign):\s*(\h+)/).flatten.map { |mask| Integer(mask, 16) }
        highest = Signal.list.fetch("RTMAX", 64)
        highest.downto(highest - 20).find { |number| ((caught | ignored) >> (number - 1)).even? }
      end
    end

    start
  end
end
