# frozen_string_literal: true

require "json"
require "puma/dsl"
require "puma/plugin"

# Reads the parent just before the fork, after all other before_fork hooks: its pages into the file MEASURED_PAGES, time
# and memory of the hooks into MEASURED_WARMUP. Must be the last plugin.
module Measured
  module_function

  def begin = @began = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def finish
    File.write(ENV.fetch("MEASURED_WARMUP"), JSON.generate(figures))
    pages = File.expand_path("../../pages.rb", __dir__)
    system(RbConfig.ruby, pages, Process.pid.to_s, ENV.fetch("MEASURED_PAGES"), exception: true)
  end

  def figures
    { "warmup_seconds" => Process.clock_gettime(Process::CLOCK_MONOTONIC) - @began, "fork_peak_bytes" => status("VmHWM"), "fork_bytes" => status("VmRSS") }
  end

  def status(name) = Integer(File.read("/proc/self/status")[/^#{name}:\s+(\d+) kB$/, 1], 10) * 1024
end

Puma::Plugin.create do
  def start(launcher)
    level = launcher.options.file_options
    hooks = Puma::DSL.new(level, launcher.config)
    hooks.before_fork { Measured.begin }
    level[:before_fork].unshift(level[:before_fork].pop)
    hooks.before_fork { Measured.finish }
  end
end
