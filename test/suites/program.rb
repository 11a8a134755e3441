# frozen_string_literal: true

require "tempfile"

module Suites
  # A program run to its end, within a bound of time, with nothing of its process group left behind.
  module Program
    # Suites are long, and must not take the machine from who works on it.
    NICENESS = 5
    private_constant :NICENESS

    module_function

    # @param seconds [Numeric] after which it is ended
    # @return [Array(String, String, nil)] all that it wrote, and what went wrong: nil where it ended by itself,
    #   with whatever status
    def run(*command, environment: {}, directory: Dir.pwd, seconds: 3_600)
      Tempfile.create("suite") do |file|
        pid = Process.spawn(environment, "nice", "-n", NICENESS.to_s, *command, chdir: directory, in: File::NULL, out: file, err: %i[child out],
                            pgroup: true, umask: 0o022)
        waiter = Process.detach(pid)
        wrong = "#{command.first} was not done after #{seconds} s" unless waiter.join(seconds)
        kill_group(pid)
        wrong ||= "#{command.first} was killed by SIG#{Signal.signame(waiter.value.termsig)}" if waiter.value.signaled?
        [File.binread(file.path).force_encoding(Encoding::UTF_8).scrub, wrong]
      end
    end

    def kill_group(pid)
      Process.kill("KILL", -pid)
    rescue Errno::ESRCH
      nil # nothing of it is left
    end
    private_class_method :kill_group
  end
end
