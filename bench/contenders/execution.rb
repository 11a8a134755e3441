# frozen_string_literal: true

require "tempfile"

module Bench
  # One process, which leads a process group of its own; the group ends with it, or after a timeout.
  class Execution
    # How it ended; status: nil after the timeout.
    Ended = Struct.new(:status, :out, :err, :timeout) do
      def success? = !status.nil? && status.success?

      # @return [String] how it failed, with the first line of the errors
      def failure
        return "it did not end within #{timeout} s" unless status

        "it ended with #{end_of(status)}#{": #{err.lines.first.strip}" unless err.strip.empty?}"
      end

      private

      def end_of(status)
        status.signaled? ? "signal #{Signal.signame(status.termsig)}" : "status #{status.exitstatus}"
      end
    end

    # @param environment [Hash{String => String, nil}] to merge into ours, without the options of this Ruby
    # @param timeout [Numeric] seconds
    # @param directory [String] its working directory
    # @yield while it runs
    # @return [Ended]
    def self.call(environment, command, timeout:, directory: Dir.pwd, &block)
      Tempfile.create("out") do |out|
        Tempfile.create("err") do |err|
          pid = spawn({ "RUBYOPT" => nil, "RUBYLIB" => nil }.merge(environment), *command,
                      in: File::NULL, out: out, err: err, pgroup: true, chdir: directory)
          status = follow(pid, timeout, &block)
          Ended.new(status, File.read(out.path), File.read(err.path), timeout)
        end
      end
    end

    # @return [Process::Status, nil] nil after the timeout
    def self.follow(pid, timeout)
      watcher = Process.detach(pid)
      yield if block_given?
      watcher.join(timeout) && watcher.value
    ensure
      end_group(pid, watcher)
    end

    # Children of the process are in its group.
    def self.end_group(pid, watcher)
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH
      nil # all have ended by themselves
    ensure
      watcher&.join
    end
  end
end
