# frozen_string_literal: true

# The factor of a workload's size.
SCALE = Float(ENV.fetch("CULET_SCALE", "1"))

# The end of a measured workload: writes the time when the work is done, so that peak, mean and wall time cover the work
# alone, collects garbage, and waits a second for memory to be returned. Without CULET_WORKLOAD_DIR it does nothing.
module Rest
  # Long enough for an allocator's background thread; shorter in tests, which scale the work down.
  SECONDS = 1.0 * (10 * SCALE).clamp(0, 1)
  # In the directory CULET_WORKLOAD_DIR; contains CLOCK_MONOTONIC in seconds.
  FILE = "done"

  module_function

  # @return [void]
  def call
    directory = ENV.fetch("CULET_WORKLOAD_DIR", nil) or return

    File.write(File.join(directory, FILE), Process.clock_gettime(Process::CLOCK_MONOTONIC).to_s)
    GC.start
    sleep(SECONDS)
  end
end
