# frozen_string_literal: true

require_relative "../../system/atomic_file"
require_relative "../../model/trace/header"

module Culet
  module Trace
    # Removes reserved space that the recorder did not use: the rest of the header's block and the ends of chunks. An
    # unpacked file is readable too, but larger.
    class Packing
      # fcntl(2): a read lease is granted only while no process has the file open, or mapped, for writing.
      F_SETLEASE = 1024
      F_RDLCK = 0
      F_UNLCK = 2
      STRIDE = 8
      CHUNK_HEAD = 8
      private_constant :F_SETLEASE, :F_RDLCK, :F_UNLCK, :STRIDE, :CHUNK_HEAD

      # @param path [String] a trace
      def initialize(path)
        @path = path
      end

      # Writes the packed file beside and renames it. A file that a process still records to is not packed, nor one on a
      # file system without leases.
      #
      # @return [Boolean] whether it was packed
      # @raise [Culet::Error] without disk space, or when the file is damaged
      def call
        File.open(@path, "rb") do |file|
          header = Header.read(@path)
          return false if header.packed? || in_use?(file)

          replace { |packed| copy(file, header, packed) }
        end
        true
      end

      private

      def in_use?(file)
        file.fcntl(F_SETLEASE, F_RDLCK)
        file.fcntl(F_SETLEASE, F_UNLCK)
        false
      rescue SystemCallError
        true
      end

      def replace
        packed = AtomicFile.start(@path)
        yield packed.io
        packed.commit
      rescue SystemCallError => e
        raise Error, "cannot pack #{@path}: #{Error.reason(e)}; the file is unchanged"
      ensure
        packed&.discard
      end

      def copy(file, header, packed)
        if header.chunks > file.size / header.stride
          raise Error, "#{@path} is truncated: it is too short for the #{header.chunks} chunks of its header; " \
                       "record again"
        end

        packed.seek(Header::BYTES)
        chunks = (0...header.chunks).count do |index|
          copy_chunk(file, header.header_bytes + index * header.stride, packed)
        end
        packed.seek(0)
        packed.write(head(file, chunks))
      end

      # @return [Boolean] whether the chunk has events
      def copy_chunk(file, offset, packed)
        file.seek(offset)
        _, used = file.read(CHUNK_HEAD)&.unpack("L2")
        raise Error, "#{@path} is truncated at byte #{offset}; record again" unless used
        raise Error, "#{@path} is damaged at byte #{offset}; record again" if used > Header::CHUNK_BYTES
        return false if used <= CHUNK_HEAD

        file.seek(offset)
        copied = IO.copy_stream(file, packed, used)
        raise Error, "#{@path} is truncated at byte #{offset + copied}; record again" if copied < used

        packed.write("\0" * (-used % STRIDE))
        true
      end

      def head(file, chunks)
        file.seek(0)
        head = file.read(Header::BYTES)
        head[Header::HEADER_BYTES_AT, 4] = [Header::BYTES].pack("L")
        head[Header::STRIDE_AT, 4] = [STRIDE].pack("L")
        head[Header::CHUNKS_AT, 8] = [chunks].pack("Q")
        head
      end
    end
  end
end
