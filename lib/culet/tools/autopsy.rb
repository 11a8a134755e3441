# frozen_string_literal: true

require_relative "../errors"
require_relative "autopsy/box"
require_relative "autopsy/ended"

module Culet
  # The report on a black box after the end of its process.
  #
  #   Box         the file (ext/culet/blackbox/format.h), checked
  #   KernelLog   kills in the kernel's log
  #   Kills       the kernel's count of kills in the control group
  #   Cause       what has ended the process, and how certain that is
  #   Findings    all of it: cause, levels, sites, requests
  #   Summary     three lines of it, for a program's stderr
  #   Ended       files of a folder whose processes have ended; notes in each file that it was reported
  #   Table, Document   for the terminal, as JSON
  #   KernelReport      what the kernel's log and the control group say, without a box
  module Autopsy
    autoload :Cause, File.expand_path("autopsy/cause", __dir__)
    autoload :Document, File.expand_path("autopsy/document", __dir__)
    autoload :Findings, File.expand_path("autopsy/findings", __dir__)
    autoload :KernelLog, File.expand_path("autopsy/kernel_log", __dir__)
    autoload :KernelReport, File.expand_path("autopsy/kernel_report", __dir__)
    autoload :Summary, File.expand_path("autopsy/summary", __dir__)
    autoload :Table, File.expand_path("autopsy/table", __dir__)
  end
end
