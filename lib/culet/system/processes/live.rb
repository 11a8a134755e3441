# frozen_string_literal: true

require "etc"
require_relative "../../errors"
require_relative "../clock"
require_relative "cpu"

module Culet
  module Processes
    # One line of /proc/PID/maps: addresses, permissions ("r-xp"), offset in the file, and the path (or a name such
    # as "[heap]", or nil).
    Mapping = Struct.new(:first, :past, :permissions, :offset, :inode, :path, keyword_init: true) do
      def file? = inode.positive? && path.to_s.start_with?("/")

      def executable? = permissions.include?("x")

      # @return [Boolean] whether the file was removed or replaced after it was mapped
      def deleted? = path.to_s.end_with?(" (deleted)")

      # @param text [String] the content of /proc/PID/maps
      # @return [Array<Mapping>]
      def self.parse(text)
        text.each_line.filter_map do |line|
          addresses, permissions, offset, _device, inode, path = line.chomp.split(" ", 6)
          first, past = addresses.split("-").map { |hex| hex.to_i(16) }
          new(first: first, past: past, permissions: permissions, offset: offset.to_i(16), inode: inode.to_i,
              path: path&.lstrip)
        end
      end
    end

    # One running process. Methods that need permission raise a Culet::Error that names its user.
    class Live
      # The process number of the parent of all kernel threads.
      KTHREADD = "2"
      # Longest wait for a process that is traced, and the pause between two looks, in seconds.
      TRACED_SECONDS = 5.0
      STEP_SECONDS = 0.05
      private_constant :KTHREADD, :TRACED_SECONDS, :STEP_SECONDS

      # @return [Integer] process number
      attr_reader :pid

      # @param text [String, Integer] a process number
      # @raise [Culet::UsageError] when it is not a number
      def self.number(text)
        return text.to_i if text.to_s.match?(/\A[1-9]\d{0,8}\z/)

        raise UsageError, "#{text.to_s.inspect} is not a process number"
      end

      # @param text [String, Integer] a process number
      # @raise [Culet::UsageError] when it is not a number
      # @raise [Culet::Error] when the process does not exist, or has no memory
      def self.find(text) = new(number(text)).tap(&:check)

      def initialize(pid)
        @pid = pid
      end

      # @raise [Culet::Error] as `find` does
      def check
        status = status_fields
        state = status["State"].to_s
        raise Error, "process #{pid} has ended; its parent has not waited for it yet" if state.start_with?("Z")
        return if status.key?("VmSize")

        kernel = [pid.to_s, status["PPid"]].include?(KTHREADD)
        raise Error, "process #{pid} #{kernel ? "is a kernel thread, without memory of its own" : "has ended"}"
      end

      # A stopped process neither answers nor shows whether it grows. A reader of its memory traces it for milliseconds.
      #
      # @raise [Culet::Error] when the process is stopped, or traced for seconds
      def check_running
        limit = Clock.now + TRACED_SECONDS
        while (state = status_fields["State"].to_s).match?(/\A[Tt]/)
          if state.start_with?("T") || Clock.now > limit
            raise Error, "process #{pid} is stopped; continue it first: kill -CONT #{pid}"
          end

          sleep(STEP_SECONDS)
        end
      end

      # @return [Hash{String => String}] /proc/PID/status
      def status_fields = read("status").each_line.to_h { |line| line.chomp.split(/:\s*/, 2) }

      # @return [Array<Mapping>]
      def mappings = Mapping.parse(read("maps"))

      # @return [String] path of the executable at the start of the process, as `mappings` has it: scrubbed UTF-8
      def executable
        path = guard { File.readlink("/proc/#{thread}/exe") }
        path.force_encoding(Encoding::UTF_8).scrub.delete_suffix(" (deleted)")
      end

      # A long title (as Puma and Sidekiq set) overwrites the environment that /proc shows.
      #
      # @return [Hash{String => String}, nil] environment at the start of the process; nil where a title overwrote it
      def environment
        text = read("environ")
        return unless text.empty? || text.match?(/\A[^=\s\0]+=/)

        text.split("\0").filter_map { |pair| pair.split("=", 2) if pair.include?("=") }.to_h
      end

      # @param path [String] a path as the process sees it, perhaps in a container
      # @return [String] the path of that file for this process
      def file(path)
        inside = "/proc/#{thread}/root#{path}"
        File.readable?(inside) ? inside : path
      end

      # @param name [String] a file of /proc/PID
      # @return [String] its content, scrubbed UTF-8
      # @raise [Culet::Error] when the process has ended or belongs to another user
      def read(name) = guard { File.read("/proc/#{thread}/#{name}", encoding: "UTF-8").scrub }

      private

      def thread = LivingThread.of(pid)

      def guard
        yield
      rescue Errno::ENOENT, Errno::ESRCH
        raise Error, "there is no process #{pid}"
      rescue Errno::EACCES, Errno::EPERM
        raise Error, forbidden
      end

      def forbidden
        uid = File.stat("/proc/#{pid}").uid
        if ::Process.euid.zero?
          "process #{pid} may not be read, even by root: the container lacks CAP_SYS_PTRACE, or the process " \
            "belongs to another container"
        elsif uid == ::Process.euid
          "process #{pid} is not dumpable (it changed its user, or disabled dumps); run culet as root"
        else
          "process #{pid} belongs to #{uid_name(uid)}; run culet as that user or as root"
        end
      rescue Errno::ENOENT
        "there is no process #{pid}"
      end

      def uid_name(uid)
        Etc.getpwuid(uid).name
      rescue ArgumentError
        "the user with number #{uid}"
      end
    end
  end
end
