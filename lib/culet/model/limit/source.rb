# frozen_string_literal: true

require_relative "../../system/kernel_file"
require_relative "../../system/memory_group"

module Culet
  module Limit
    # The limit of a process: the tightest control group, else RLIMIT_AS, or what the settings say.
    class Source
      # @return [Integer, nil] the limit; nil: there is none
      attr_reader :bytes

      # @return [String] where it is from
      attr_reader :description

      # @return [Symbol] what counts: :group, :space (address space) or :pss
      attr_reader :kind

      # @return [MemoryGroup, nil]
      attr_reader :group

      # @return [Array<String>] a sentence for each file that could not be used
      attr_reader :problems

      # @param bytes [Integer, nil] the limit; nil: there is none
      # @param description [String] where it is from
      # @param used [Integer, nil] bytes in use; nil: not known
      # @return [Hash{String => Object}] these, and what is left, with the keys of Culet::Limit.status
      def self.usage(bytes, description, used)
        { "limit_bytes" => bytes, "source" => description, "used_bytes" => used,
          "headroom_bytes" => bytes && used && [bytes - used, 0].max }
      end

      # @param settings [Settings, nil] nil: the kernel's limit counts
      # @param pid [Integer, String] a process number, or "self"
      # @param root [String] the folder that has /proc and the mounted control groups
      def initialize(settings = nil, pid: "self", root: "/")
        @pid = pid
        @root = root
        @group, @problems = MemoryGroup.tightest(pid, root: root)
        find_kernel_limit
        apply(settings) if settings
      end

      # @return [Integer, nil] bytes in use; nil if they cannot be read
      def used_bytes
        case kind
        when :group then group.used_bytes
        when :space then kilobytes("status", "VmSize")
        else kilobytes("smaps_rollup", "Pss") || kilobytes("status", "VmRSS")
        end
      end

      private

      def find_kernel_limit
        space = address_space
        if group
          @kind = :group
          @bytes = group.limit_bytes
          @description = "control group #{group.folder}"
        elsif space
          @kind = :space
          @bytes = space
          @description = "RLIMIT_AS"
        else
          @kind = :pss
          @description = "none"
        end
      end

      # A limit below the kernel's is for the process, or for its cluster, and not for all in the group.
      def apply(settings)
        if settings.percent && bytes
          @bytes = bytes * settings.percent / 100
          @description = "#{settings.percent} % of #{description}"
        elsif settings.bytes && (bytes.nil? || settings.bytes < bytes)
          @kind = :pss
          @bytes = settings.bytes
          @group = nil
          @description = "setting"
        end
      end

      def address_space
        text = KernelFile.read(File.join(@root, "proc/#{@pid}/limits"))
        text[/^Max address space +(\d{1,20}) /, 1]&.to_i
      rescue SystemCallError
        nil
      end

      # Reads the file directly: Processes would be loaded into every program.
      #
      # @return [Integer, nil] bytes
      def kilobytes(file, field)
        number = KernelFile.read(File.join(@root, "proc/#{@pid}/#{file}"))[/^#{field}:\s+(\d+) kB/, 1]
        number && (number.to_i * 1024)
      rescue SystemCallError
        nil
      end
    end
  end
end
