# frozen_string_literal: true

require "coverage"
require_relative "extension"

module Culet
  # `require "culet/unused"` records which compiled code of this process, and of the processes it forks, runs;
  # `culet requires --unused PID` lists the rest. It uses oneshot coverage, which costs a little when a line runs for
  # the first time and nothing afterwards. Code loaded before this file is not recorded. A program that measures
  # coverage itself cannot use it.
  #
  # Oneshot coverage reports a line once, so code that ran at boot counts as used. With CULET_UNUSED_FROM=asked,
  # recording starts at the first request or at Culet::Unused.follow.
  #
  # The agent (culet/agent) answers requests in a forked copy, so that the process itself allocates no objects.
  #
  # The extension defines Culet::Unused.watch, .fired, .pieces and .json.
  module Unused
    # The variable with the folder that processes write their results to at exit.
    VARIABLE = "CULET_UNUSED"
    # When recording starts: "start", or "asked", at the first request.
    FROM = "CULET_UNUSED_FROM"
    FROM_WORDS = %w[start asked].freeze
    private_constant :FROM, :FROM_WORDS

    class << self
      # @return [Boolean] whether recording is possible
      def start
        return false unless able?

        Coverage.setup(oneshot_lines: true)
        @since = from
        follow if @since == "start"
        require_relative "../../lib/culet/agent"
        require_relative "unused/run_code"
        Agent.unused_reporter = self if Culet.native?
        at_exit { write_at_exit } if ENV[VARIABLE]
        true
      end

      # @return [Boolean] whether this process can report unused code
      def started? = !@since.nil?

      # Starts recording in this process and in those it forks. Takes some tens of milliseconds in a large program and
      # drops JIT code once.
      #
      # @return [Boolean] false if it was recording already
      def follow
        return false if @following || !started?

        @following = true
        watch
        Coverage.resume
        true
      end

      # The results so far.
      #
      # @param pid [Integer] the process to name, since a forked copy may answer
      # @param parent_pid [Integer] its parent
      # @return [String] JSON, see RunCode
      def document(pid = Process.pid, parent_pid = Process.ppid)
        json(RunCode.new(pid: pid, parent_pid: parent_pid, since: @following ? @since : "now").to_h)
      end

      # Writes the results to PID.json in the folder of CULET_UNUSED.
      #
      # @return [String] path of the file
      # @raise [Culet::Error] when it cannot be written
      def write
        require_relative "../../lib/culet/system/atomic_file"
        folder = ENV.fetch(VARIABLE) { raise Error, "#{VARIABLE} is not set" }
        prepare(folder)
        path = File.join(folder, "#{Process.pid}.json")
        AtomicFile.write(path, document, secret: true)
        path
      end

      private

      def able?
        sentence = if !Boot.native? then Boot.missing_reason
                   elsif Coverage.running? then "coverage is already running"
                   elsif !Coverage.respond_to?(:setup) then "this Ruby lacks Coverage.setup"
                   elsif !FROM_WORDS.include?(from) then "#{FROM}: '#{from}' is not one of #{FROM_WORDS.join(", ")}"
                   end
        Native.warn("unused code is not recorded: #{sentence}") if sentence
        sentence.nil?
      end

      def from = ENV[FROM].to_s.then { |word| word.empty? ? FROM_WORDS.first : word }

      # The folder may be in /tmp, where other users can create files.
      def prepare(folder)
        Dir.mkdir(folder, 0o700)
      rescue Errno::EEXIST
        stat = File.lstat(folder)
        return if stat.directory? && stat.owned? && (stat.mode & 0o022).zero?

        raise Error, "#{folder} is not a private folder of this user"
      end

      def write_at_exit
        write
      rescue Error, SystemCallError, NotImplementedError => e
        warn("culet: unused code cannot be written: #{e.message}")
      end
    end

    start
  end
end
