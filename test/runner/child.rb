# frozen_string_literal: true

require "tempfile"

module Runner
  # The process that runs one test file or part. It leads a process group, so that what it leaves behind can be ended with
  # it.
  class Child
    # What a test needs to end what it started, once it is told to end.
    GRACE_SECONDS = 10

    # @return [TestFile, Part]
    attr_reader :file
    # @return [Integer]
    attr_reader :pid

    # @param file [TestFile, Part]
    def initialize(file)
      @file = file
      @began = now
      # A file and not a pipe: a process that is left behind with it open must not be waited for.
      @output = Tempfile.new("culet-test")
      @pid = spawn(*file.command, in: File::NULL, out: [@output.path, "a"], err: %i[child out], pgroup: true)
    end

    # @return [Float] how long it has been running
    def seconds = now - @began

    # Tells the process to end.
    def tell = signal(:TERM, pid)

    # Ends the process: its tests end what they started, and what they leave of its group is killed.
    #
    # @return [Process::Status]
    def finish
      tell
      limit = now + GRACE_SECONDS
      sleep 0.02 until (ended = Process.wait2(pid, Process::WNOHANG)) || now > limit
      signal(:KILL, -pid)
      (ended || Process.wait2(pid)).last
    end

    # To be called when the process has been waited for.
    #
    # @param fault [String, nil] why it was ended, where it was
    def outcome(status, fault: nil)
      fault ||= "the process was ended by SIG#{Signal.signame(status.termsig)}" if status.signaled?
      file.outcome(File.read(@output.path, encoding: Encoding::UTF_8).scrub, success: status.success?, fault: fault)
    end

    # Removes the file with the output.
    def discard = @output.close!

    private

    def signal(name, receiver)
      Process.kill(name, receiver)
    rescue Errno::ESRCH
      nil # it has ended by itself
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
