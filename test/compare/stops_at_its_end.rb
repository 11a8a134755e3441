# frozen_string_literal: true

# For RUBYOPT: a built-in workload stops at its end until it has been sampled there (sampled.rb).
at_exit { Process.kill(:STOP, Process.pid) } if $PROGRAM_NAME.include?("/workloads/")
