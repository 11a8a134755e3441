# frozen_string_literal: true

require_relative "doctor/finding"
require_relative "../allocators/inspected_process"
require_relative "doctor/allocator_check"
require_relative "doctor/preload_check"
require_relative "doctor/settings_check"
require_relative "doctor/version_check"
require_relative "doctor/arena_check"
require_relative "doctor/trim_check"
require_relative "doctor/collector_check"
require_relative "doctor/kernel_check"
require_relative "doctor/container_check"

module Culet
  # Checks a running process from outside: which allocator serves it, and which settings decide its memory. Each check
  # is a class with one method, `findings`.
  #
  # @api private
  class Doctor
    # The checks, in the order of the report.
    CHECKS = [AllocatorCheck, PreloadCheck, SettingsCheck, VersionCheck, ArenaCheck, TrimCheck, CollectorCheck,
              KernelCheck, ContainerCheck].freeze

    # @param pid [Integer, String]
    # @param subject [Integer, String] what `culet explain` is given in advice: PID for a process that is about to end
    # @raise [Culet::Error] when the process does not exist or may not be read
    def initialize(pid, subject: pid)
      @target = Allocators::InspectedProcess.new(Processes::Live.find(pid))
      @subject = subject
    end

    # @return [Allocators::InspectedProcess] the process
    attr_reader :target

    # @return [Array<Finding>] in the order of CHECKS
    # @raise [Culet::Error] when the process ends meanwhile or may not be read
    def findings = @findings ||= CHECKS.flat_map { |check| check.new(target, @subject).findings }
  end
end
