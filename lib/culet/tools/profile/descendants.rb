# frozen_string_literal: true

require "set"
require_relative "../../system/foreign_file"
require_relative "../../system/processes"
require_relative "last_reading"
require_relative "live"
require_relative "../../model/profile/recording"

module Culet
  module Profile
    # A command and the processes that it has started: what each has written into a folder, or else has answered last.
    #
    #   PID        written at the end of the process
    #   PID.execN  written before exec
    #   PID.last   written from time to time by a program without Ruby, and removed at its end
    class Descendants
      # Longest wait for a process to begin its answer.
      WAIT_SECONDS = 2.0
      FILE = /\A(\d+)(?:\.(last|exec\d+))?\z/
      # A process that is seen once may be on its way to exec.
      LOOKS = 2
      # A process: its number and start, name, how often it was seen as Ruby, last reading, when it ended.
      Member = Struct.new(:pid, :ticks, :name, :looks, :reading, :ended_at)
      private_constant :WAIT_SECONDS, :FILE, :LOOKS, :Member

      # @return [Array<String>] names of Ruby processes that have left nothing
      attr_reader :missing

      # @param root [Integer] the command's process number
      # @param folder [String] where its processes write
      def initialize(root, folder)
        @root = root
        @folder = folder
        @members = []
        @missing = []
        @written = Set.new
      end

      # Notes new and ended processes, and reads those that are due.
      def look
        running.each { |member| finish(member) unless alive?(member) }
        (pids - running.map(&:pid)).each { |pid| add(pid) }
        running.each do |member|
          describe(member)
          read(member) if member.reading.due?
        end
      end

      # Reads all processes that run. What a process has left at its end is returned once.
      #
      # @return [Array<Stream>] the command's own process first
      # @raise [Culet::Error] when a file cannot be read
      def take
        look
        running.each { |member| read(member) }
        streams = written
        streams += answered(streams)
        forget(streams.map { |stream| stream.pid.to_s })
        streams.sort_by { |stream| [stream.pid == @root ? 0 : 1, stream.pid, stream.state == :replaced ? 0 : 1] }
      end

      private

      def running = @members.reject(&:ended_at)

      # Processes whose parent has ended are not the command's descendants any more.
      def pids
        found = Processes::Tree.new(@root).pids
        (running.map(&:pid) - found).each { |pid| found |= Processes::Tree.new(pid).pids }
        found
      end

      def alive?(member) = Processes::Cpu.start_ticks(member.pid) == member.ticks && Processes::Cpu.alive?(member.pid)

      # A file that the process has written is newer than its last answer.
      def finish(member)
        member.ended_at = Time.now
        member.reading = nil if File.exist?(File.join(@folder, member.pid.to_s))
      end

      def add(pid)
        ticks = Processes::Cpu.start_ticks(pid)
        return unless ticks && Processes::Cpu.alive?(pid)

        reading = LastReading.new(Live.new(pid, wait_seconds: WAIT_SECONDS))
        @members << Member.new(pid, ticks, "process #{pid}", 0, reading)
      rescue Error
        nil # it has just ended
      end

      # Titles change, and exec makes another program of a process.
      def describe(member)
        identity = Processes::Identity.new(member.pid)
        return if identity.command_line.empty?

        member.name = "process #{member.pid} (#{identity.title})"
        member.looks = identity.executable.to_s.start_with?("ruby") ? member.looks + 1 : 0
      end

      # One that boots or is busy is asked again.
      def read(member)
        member.reading.take if member.looks.positive?
      rescue Error
        nil
      end

      def member(pid) = @members.reverse_each.find { |member| member.pid == pid }

      def written
        files = Dir.children(@folder).filter_map { |name| FILE.match(name) }
        ended = files.filter_map { |file| file[1] unless file[2] }
        files.map do |file|
          next stream(file, :exited) unless file[2]

          stream(file, file[2] == "last" && !ended.include?(file[1]) ? :ended : :replaced)
        end
      end

      def stream(file, state)
        path = File.join(@folder, file[0])
        pid = file[1].to_i
        member = member(pid)
        state = :running if state == :ended && (member ? !member.ended_at : Processes::Cpu.alive?(pid))
        text = ForeignFile.read(path, most_bytes: STREAM_BYTES)
        File.unlink(path) unless state == :running
        name = member&.name || "process #{pid}"
        Stream.new(state == :replaced ? "#{name} before exec" : name, pid, text, state, member&.ended_at)
      end

      # The last answer of a process counts unless the process has written a later file.
      def answered(written)
        final = written.reject { |stream| stream.state == :running }
        @written.merge(final.filter_map(&:identity))
        later = written.reject { |stream| stream.state == :replaced }.map(&:pid)
        readings = @members.filter_map do |member|
          member.ended_at ? member.reading&.at_end(member.ended_at) : member.reading.stream
        end
        readings.reject { |stream| later.include?(stream.pid) || @written.include?(stream.identity) }
      end

      def forget(found)
        ended, @members = @members.partition(&:ended_at)
        found |= @written.map(&:first)
        @missing += ended.reject { |member| member.looks < LOOKS || found.include?(member.pid.to_s) }.map(&:name)
      end
    end
  end
end
