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
  # It is asked by way of the agent (culet/agent), and a copy of the process answers, so that the process itself makes no
  # object for it.
  #
  # From the extension come:
  # - Culet::Unused.watch, fired, pieces, json: see ext/culet/unused/unused.c
  module Unused
    # A folder for the answers of processes that end. Where it is not set, none answers then.
    VARIABLE = "CULET_UNUSED"
    # What counts: all that runs from the start on, or what runs after the first question.
    FROM = "CULET_UNUSED_FROM"
    FROM_WORDS = ["start", "asked"].freeze
    private_constant :FROM, :FROM_WORDS

    class << self
      # @return [Boolean] whether it listens
      def start
        return false unless able?

        Coverage.setup(oneshot_lines: true)
        @since = from
        follow if @since == "start"
        require_relative "agent"
        require_relative "runtime/unused/census"
        at_exit { write_at_exit } if ENV[VARIABLE]
        true
      end

      # @return [Boolean] whether this process can tell which of its code ran
      def started? = !@since.nil?

      # What runs counts from now on, in this process and in those it forks, unless it does already. Takes some tens of
      # milliseconds in a large program, because all code is gone through; compiled code of a JIT is dropped once.
      #
      # @return [Boolean] whether it did not before
      def follow
        return false if @following || !started?

        @following = true
        watch
        Coverage.resume
        true
      end

      # What this process knows by now.
      #
      # @param pid [Integer] its number: this may be a copy of it
      # @param parent_pid [Integer]
      # @return [String] JSON, see Census
      def document(pid = Process.pid, parent_pid = Process.ppid)
        json(Census.new(pid: pid, parent_pid: parent_pid, since: @following ? @since : "now").to_h)
      end

      # Writes it to a file of this process's number in the folder that CULET_UNUSED names.
      #
      # @return [String] the file
      # @raise [Culet::Error] when it cannot be written
      def write
        require_relative "system/atomic_file"
        folder = ENV.fetch(VARIABLE) { raise Error, "#{VARIABLE} names no folder" }
        prepare(folder)
        path = File.join(folder, "#{Process.pid}.json")
        AtomicFile.write(path, document, secret: true)
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

      # In a folder that all may write to, nobody else may have put something there.
      def prepare(folder)
        Dir.mkdir(folder, 0o700)
      rescue Errno::EEXIST
        stat = File.lstat(folder)
        return if stat.directory? && stat.owned? && (stat.mode & 0o022).zero?

        raise Error, "#{folder} is not a folder of this user's alone"
      end

      def write_at_exit
        write
      rescue Error, SystemCallError, NotImplementedError => e
        warn("culet: which code ran cannot be told: #{e.message}")
      end
    end

    start
  end
end
