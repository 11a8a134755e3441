# frozen_string_literal: true

# Loaded into the program that bench/require/cost measures: writes its CPU time and RSS, before the work of other
# at_exit hooks, to the file CULET_BENCH_FIGURES.
cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
at_exit do
  used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - cpu
  GC.start
  resident = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i * 1024
  File.write(ENV.fetch("CULET_BENCH_FIGURES"), "#{used} #{resident}")
end
