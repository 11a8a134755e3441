# frozen_string_literal: true

# For RUBYOPT: a built-in workload stops at its end until it has been sampled there (sampled.rb).
if $PROGRAM_NAME.include?("/workloads/")
  own = Process.pid
  at_exit { Process.kill(:STOP, own) if Process.pid == own }
end
