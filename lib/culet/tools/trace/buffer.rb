# frozen_string_literal: true

require_relative "../../native"
require_relative "../../model/trace/header"

module Culet
  module Trace
    # The recording buffer (replay/format.h): memory that recorders map and write events to. `culet trace` copies the
    # events to the trace files, so SIGKILL loses none.
    class Buffer
      TABLE_BYTES = 262_144
      SLOTS = 4095
      CHUNK_BYTES = 65_536
      SLOT_BYTES = 64
      # struct culet_buffer: magic, collector, closed, reached.
      MAGIC = "culetstg"
      CLOSED_AT = 12
      REACHED_AT = 16
      # struct culet_buffer_slot: state, pid, file_pid, file_number, offset, device, inode, pid_namespace
      SLOT_LAYOUT = "L4 Q4"
      FREE = 0
      FILLED = 2
      CHUNK_HEAD = "L2"
      CHUNK_HEAD_BYTES = 8
      USED_AT = 4
      COPY_SECONDS = 0.25
      private_constant :TABLE_BYTES, :SLOTS, :CHUNK_BYTES, :SLOT_BYTES, :MAGIC, :CLOSED_AT, :REACHED_AT, :SLOT_LAYOUT,
                       :FREE, :FILLED, :CHUNK_HEAD, :CHUNK_HEAD_BYTES, :USED_AT, :COPY_SECONDS

      Slot = Struct.new(:index, :pid, :file_pid, :file_number, :offset, :device, :inode, :pid_namespace)
      private_constant :Slot

      # Copies events to the files during the block, and once more after it.
      #
      # @param path [String] the trace file of the command
      # @yieldparam buffer [Buffer, nil] nil where the kernel has no memfd: recorders then write to the files
      #   themselves, with a delay
      # @return the block's value
      def self.open(path)
        buffer = create(path)
        collector = Thread.new { buffer.collect } if buffer
        yield buffer
      ensure
        buffer&.close
        collector&.join
      end

      # @return [Buffer, nil]
      def self.create(path)
        bytes = TABLE_BYTES + (SLOTS * CHUNK_BYTES)
        return if ::Process.getrlimit(:FSIZE).first < bytes || !Native.load

        new(path, IO.for_fd(MemoryFile.create("culet-trace", bytes), "r+b"))
      rescue SystemCallError
        nil # no memfd_create
      end
      private_class_method :create

      # @param file [IO] zeros, of the full size
      def initialize(path, file)
        @path = path
        @file = file
        @copied = {}
        @lock = Mutex.new
        @closing = ConditionVariable.new
        @closed = false
        @pid_namespace = pid_namespace
        @file.pwrite([MAGIC, ::Process.pid].pack("a8 L"), 0)
      end

      # @return [String] the path that recorders open
      def name = "/proc/#{::Process.pid}/fd/#{@file.fileno}"

      # Copies periodically until `close`, and once more.
      def collect
        copy until closed_within(COPY_SECONDS)
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

      def pid_namespace
        File.stat("/proc/self/ns/pid").ino
      rescue SystemCallError
        0
      end

      def copy
        filled.each do |slot|
          ended = ended?(slot) # before the copy, which then has all its events
          copy_chunk(slot)
          @file.pwrite([FREE].pack("L"), slot_offset(slot.index)) if ended
        end
      end

      # The table's head is as long as a slot.
      def slot_offset(index) = (index + 1) * SLOT_BYTES

      def filled
        reached = [@file.pread(4, REACHED_AT).unpack1("L"), SLOTS].min
        return [] if reached.zero?

        table = @file.pread(reached * SLOT_BYTES, slot_offset(0))
        reached.times.filter_map { |index| slot(index, table.byteslice(index * SLOT_BYTES, SLOT_BYTES)) }
      end

      def slot(index, bytes)
        state, *rest = bytes.unpack(SLOT_LAYOUT)
        Slot.new(index, *rest) if state == FILLED
      end

      def ended?(slot)
        return false unless slot.pid_namespace == @pid_namespace && slot.pid.positive?

        ::Process.kill(0, slot.pid)
        false
      rescue Errno::ESRCH
        true
      rescue SystemCallError
        false
      end

      def file(slot)
        case slot.file_number
        when 0 then @path
        when 1 then "#{@path}.#{slot.file_pid}"
        else "#{@path}.#{slot.file_pid}.#{slot.file_number}"
        end
      end

      # The table is writable by the program, so it is not trusted: only trace files of this recording are written,
      # within their reserved space.
      def copy_chunk(slot)
        return unless changed?(slot)

        File.open(file(slot), File::RDWR | File::NOFOLLOW | File::NONBLOCK | File::BINARY) do |trace|
          trace.flock(File::LOCK_EX)
          next unless same?(slot, trace) && slot(slot.index, @file.pread(SLOT_BYTES, slot_offset(slot.index))) == slot

          write(slot, trace)
        end
      rescue SystemCallError
        nil # removed or replaced: the recorder reports that
      end

      def changed?(slot) = state(slot, used(slot)) != @copied[slot.index]

      def state(slot, used) = [slot.inode, slot.offset, used]

      def used(slot)
        magic, used = @file.pread(CHUNK_HEAD_BYTES, chunk_offset(slot)).unpack(CHUNK_HEAD)
        used if magic == Header::CHUNK_MAGIC && used.between?(CHUNK_HEAD_BYTES, CHUNK_BYTES)
      end

      def chunk_offset(slot) = TABLE_BYTES + (slot.index * CHUNK_BYTES)

      def same?(slot, trace)
        stat = trace.stat
        stat.file? && stat.dev == slot.device && stat.ino == slot.inode && stat.size >= slot.offset + CHUNK_BYTES &&
          slot.offset >= Header::BYTES && trace.pread(Header::MAGIC.bytesize, 0) == Header::MAGIC &&
          trace.pread(CHUNK_HEAD_BYTES, slot.offset).unpack1("L") == Header::CHUNK_MAGIC
      end

      def write(slot, trace)
        used = used(slot) or return
        events = @file.pread(used, chunk_offset(slot)).byteslice(CHUNK_HEAD_BYTES..)
        trace.pwrite(events, slot.offset + CHUNK_HEAD_BYTES)
        trace.pwrite([used].pack("L"), slot.offset + USED_AT)
        @copied[slot.index] = state(slot, used)
      end
    end
  end
end
