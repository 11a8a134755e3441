# frozen_string_literal: true

# The end of a workload, for whoever measures it: what is resident once the work is done. The end of the work is noted,
# so that peak, mean and time are the work's alone; then comes a full collection, and a second in which memory can go
# back. Nothing happens where nobody measures.
module Rest
  # A thread that gives memory back once in a while has had its turn by then. Trials of a hundredth of the work are
  # for tests, which do not look at what is left.
  SECONDS = 1.0 * (10 * Float(ENV.fetch("CULET_SCALE", "1"))).clamp(0, 1)
  # Of the note, in the directory that CULET_WORKLOAD_DIR names: CLOCK_MONOTONIC in seconds.
  FILE = "done"

  module_function

  # @return [void]
  def call
    directory = ENV["CULET_WORKLOAD_DIR"] or return

    File.write(File.join(directory, FILE), Process.clock_gettime(Process::CLOCK_MONOTONIC).to_s)
    GC.start
    sleep(SECONDS)
  end
end
