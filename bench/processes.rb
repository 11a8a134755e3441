# frozen_string_literal: true

require "rbconfig"
require "culet/system/clock"
require "culet/system/processes"

module Bench
  # Programs that are measured by what the kernel counts of them.
  module Processes
    SAMPLING_SECONDS = 0.02

    module_function

    # Runs a Ruby program, which prints a line when it is ready, until the block ends.
    #
    # @param settings [Hash{String => String, nil}] variables of its environment
    # @param rest [Numeric] seconds between the line and the block
    # @yieldparam pid [Integer]
    # @return [Object] the block's value
    def beside(settings, *words, rest:)
      IO.pipe do |reader, writer|
        pid = spawn({ "RUBYOPT" => nil, **settings }, RbConfig.ruby, "-I#{ROOT}/lib", *words, out: writer, pgroup: true)
        writer.close
        raise Culet::Error, "the program did not start" unless reader.gets

        sleep rest
        yield pid
      ensure
        Process.kill(:KILL, -pid)
        Process.wait(pid)
      end
    end

    # @param pattern [Regexp] of their name, as the kernel knows it
    # @return [Float] CPU seconds so far of threads
    def thread_seconds(pids, pattern)
      pids.sum do |pid|
        Dir.glob("/proc/#{pid}/task/*").sum do |folder|
          pattern.match?(File.read("#{folder}/comm").chomp) ? File.read("#{folder}/schedstat").to_i : 0
        end
      end / 1e9
    end

    # Runs a command to its end.
    #
    # @return [Hash{Symbol => Object}] seconds by kind, the largest resident size, and what it printed
    def usage(*command)
      before = Process.times
      start = Culet::Clock.now
      peak = 0
      text = IO.popen(command) do |program|
        reader = Thread.new { program.read }
        resident = -> { Culet::Processes::Memory.peak_rss_bytes(program.pid).to_i }
        peak = [peak, resident.call].max until reader.join(SAMPLING_SECONDS)
        reader.value
      end
      raise Culet::Error, "#{command.join(" ")} failed" unless $?.success?

      after = Process.times
      { user: after.cutime - before.cutime, system: after.cstime - before.cstime, wall: Culet::Clock.now - start,
        peak: peak, text: text }
    end
  end
end
