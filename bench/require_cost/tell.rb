# frozen_string_literal: true

# Loaded into the program that bench/require-cost measures: its CPU time and resident bytes before anything that is only
# done at its end, to the file named by CULET_BENCH_TELL.
cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
at_exit do
  used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu
  GC.start
  File.write(ENV.fetch("CULET_BENCH_TELL"), "#{used} #{File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i * 1024}")
end
