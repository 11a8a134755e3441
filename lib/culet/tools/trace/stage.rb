# frozen_string_literal: true

require_relative "../../native"
require_relative "header"

module Culet
  module Trace
    # Where recorders fill their chunks (trace/format.h): memory of ours that they map. What a killed process recorded is
    # there, and is copied into the trace files from here.
    class Stage
      TABLE_BYTES = 262_144
      SLOTS = 4095
      CHUNK_BYTES = 65_536
      SLOT_BYTES = 64
      # What stands in the table's head: magic, collector, closed, reached. The last two are the recorders' to change too.
      MAGIC = "culetstg"
      CLOSED_AT = 12
      REACHED_AT = 16
      # state, owner, file_pid, file_try, offset, device, inode, namespace
      SLOT = "L4 Q4"
      FREE = 0
      FILLED = 2
      CHUNK_HEAD = "L2"
      CHUNK_HEAD_BYTES = 8
      USED_AT = 4
      STEP_SECONDS = 0.25
      private_constant :TABLE_BYTES, :SLOTS, :CHUNK_BYTES, :SLOT_BYTES, :MAGIC, :CLOSED_AT, :REACHED_AT, :SLOT, :FREE, :FILLED, :CHUNK_HEAD, :CHUNK_HEAD_BYTES,
                       :USED_AT, :STEP_SECONDS

      Entry = Struct.new(:number, :owner, :file_pid, :file_try, :offset, :device, :inode, :namespace)
      private_constant :Entry

      # Yields one, copies now and then what is recorded meanwhile, and at last what there is then.
      #
      # @param path [String] the trace file of the command itself
      # @yieldparam stage [Stage, nil] nil where this machine gives none: recorders write by themselves then, a little
      #   later than at once
      # @return what the block returns
      def self.open(path)
        stage = create(path)
        collector = Thread.new { stage.collect } if stage
        yield stage
      ensure
        stage&.close
        collector&.join
      end

      # @return [Stage, nil]
      def self.create(path)
        bytes = TABLE_BYTES + (SLOTS * CHUNK_BYTES)
        return if ::Process.getrlimit(:FSIZE).first < bytes || !Native.load

        new(path, IO.for_fd(MemoryFile.create("culet-trace", bytes), "r+b"))
      rescue SystemCallError
        nil # a kernel or a container without such files
      end
      private_class_method :create

      # @param path [String]
      # @param file [IO] of the right size, zeros
      def initialize(path, file)
        @path = path
        @file = file
        @copied = {}
        @lock = Mutex.new
        @closing = ConditionVariable.new
        @closed = false
        @namespace = namespace
        @file.pwrite([MAGIC, ::Process.pid].pack("a8 L"), 0)
      end

      # @return [String] by which the recorders open it
      def name = "/proc/#{::Process.pid}/fd/#{@file.fileno}"

      # Copies until it is closed, and then once more.
      #
      # @return [void]
      def collect
        copy until closed_within(STEP_SECONDS)
        @file.pwrite([1].pack("L"), CLOSED_AT)
        copy
      ensure
        @file.close
      end

      # @return [void]
      def close
        @lock.synchronize do
          @closed = true
          @closing.signal
        end
      end

      private

      def closed_within(seconds)
        @lock.synchronize do
          @closing.wait(@lock, seconds) unless @closed
          @closed
        end
      end

      def namespace
        File.stat("/proc/self/ns/pid").ino
      rescue SystemCallError
        0
      end

      def copy
        filled.each do |entry|
          ended = ended?(entry) # asked first: what it recorded until then is there
          put(entry)
          @file.pwrite([FREE].pack("L"), place(entry.number)) if ended
        end
      end

      # The head is as long as a slot.
      def place(number) = (number + 1) * SLOT_BYTES

      def filled
        reached = [@file.pread(4, REACHED_AT).unpack1("L"), SLOTS].min
        return [] if reached.zero?

        table = @file.pread(reached * SLOT_BYTES, place(0))
        reached.times.filter_map { |number| entry(number, table.byteslice(number * SLOT_BYTES, SLOT_BYTES)) }
      end

      def entry(number, bytes)
        state, *rest = bytes.unpack(SLOT)
        Entry.new(number, *rest) if state == FILLED
      end

      def ended?(entry)
        return false unless entry.namespace == @namespace && entry.owner.positive?

        ::Process.kill(0, entry.owner)
        false
      rescue Errno::ESRCH
        true
      rescue SystemCallError
        false
      end

      def file(entry)
        case entry.file_try
        when 0 then @path
        when 1 then "#{@path}.#{entry.file_pid}"
        else "#{@path}.#{entry.file_pid}.#{entry.file_try}"
        end
      end

      # What a process writes into the table is not to be trusted: only a trace file of this recording is written to, and
      # only within what was reserved in it.
      def put(entry)
        return unless changed?(entry)

        File.open(file(entry), File::RDWR | File::NOFOLLOW | File::NONBLOCK | File::BINARY) do |trace|
          trace.flock(File::LOCK_EX)
          next unless same?(entry, trace) && entry(entry.number, @file.pread(SLOT_BYTES, place(entry.number))) == entry

          write(entry, trace)
        end
      rescue SystemCallError
        nil # removed or replaced meanwhile: the recorder says so
      end

      def changed?(entry) = state(entry, used(entry)) != @copied[entry.number]

      def state(entry, used) = [entry.inode, entry.offset, used]

      def used(entry)
        magic, used = @file.pread(CHUNK_HEAD_BYTES, body(entry)).unpack(CHUNK_HEAD)
        used if magic == Header::CHUNK_MAGIC && used.between?(CHUNK_HEAD_BYTES, CHUNK_BYTES)
      end

      def body(entry) = TABLE_BYTES + (entry.number * CHUNK_BYTES)

      def same?(entry, trace)
        stat = trace.stat
        stat.file? && stat.dev == entry.device && stat.ino == entry.inode && stat.size >= entry.offset + CHUNK_BYTES &&
          entry.offset >= Header::BYTES && trace.pread(Header::MAGIC.bytesize, 0) == Header::MAGIC &&
          trace.pread(CHUNK_HEAD_BYTES, entry.offset).unpack1("L") == Header::CHUNK_MAGIC
      end

      def write(entry, trace)
        used = used(entry) or return
        trace.pwrite(@file.pread(used, body(entry)).byteslice(CHUNK_HEAD_BYTES..), entry.offset + CHUNK_HEAD_BYTES)
        trace.pwrite([used].pack("L"), entry.offset + USED_AT)
        @copied[entry.number] = state(entry, used)
      end
    end
  end
end
