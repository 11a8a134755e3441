# frozen_string_literal: true

require "etc"
require "open3"
require "rbconfig"
require "time"
require_relative "../allocators"
require_relative "../system/kernel_file"
require_relative "../system/processes"

module Culet
  module Benchmark
    # The document's "environment": machine, versions and the settings of a plan. Tools add their own.
    class Machine
      # The user's settings of Ruby, the same for every candidate.
      RUBY_VARIABLES = /\A(?:RUBYOPT|RUBY_\w+)\z/
      private_constant :RUBY_VARIABLES

      # @param ruby [String] path of the Ruby that runs the built-in workloads
      def initialize(plan:, ruby: RbConfig.ruby)
        @plan = plan
        @ruby = ruby
      end

      # @return [Hash]
      def to_h
        { "ruby" => ruby, "kernel" => kernel, "glibc" => Allocators.parse("glibc").version, "cpu" => cpu,
          "cores" => Etc.nprocessors, "memory_bytes" => memory_bytes,
          "page_size_bytes" => Processes::Memory::PAGE_BYTES,
          "thp" => thp, "started_at" => Time.now.iso8601, "command" => @plan.command_line, **settings }
      end

      private

      def settings
        { "seed" => @plan.seed, "runs" => @plan.runs, "timeout_seconds" => @plan.timeout_seconds,
          "ruby_variables" => ENV.to_h.select { |name, _| name.match?(RUBY_VARIABLES) } }
      end

      def ruby
        return RUBY_DESCRIPTION if File.identical?(@ruby, RbConfig.ruby)

        text, status = Open3.capture2(@ruby, "-v")
        raise Error, "#{@ruby} is not a Ruby interpreter: `#{@ruby} -v` failed" unless status.success?

        text.strip
      rescue SystemCallError
        raise Error, "cannot run #{@ruby}; set --ruby to the path of a Ruby interpreter"
      end

      def kernel = Etc.uname.values_at(:sysname, :release, :machine).join(" ")

      # x86 has the model's name, ARM numbers of implementer and part.
      def cpu
        text = File.read("/proc/cpuinfo")
        text[/^model name\s*:\s*(.+)$/, 1] || arm(text) || Etc.uname[:machine]
      end

      def arm(text)
        implementer = text[/^CPU implementer\s*:\s*(\S+)/, 1]
        part = text[/^CPU part\s*:\s*(\S+)/, 1]
        "ARM implementer #{implementer} part #{part}" if implementer && part
      end

      def memory_bytes = File.read("/proc/meminfo")[/^MemTotal:\s+(\d+) kB/, 1].to_i * 1024

      # @return [String, nil] nil on a kernel without transparent huge pages
      def thp
        mode = KernelFile.huge_pages || "unknown"
        mode unless mode == "none"
      end
    end
  end
end
