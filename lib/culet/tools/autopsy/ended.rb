# frozen_string_literal: true

require "zlib"
require_relative "../../errors"
require_relative "box"
require_relative "kills"

module Culet
  module Autopsy
    # Files of this user whose processes have ended. A file that was reported has a note of that, so it is reported
    # once. Other users' files are left alone: they may say anything, and these reports come unasked.
    class Ended
      # The witness of format.h.
      OFFSET, SLOT_BYTES = Box::PLACES.fetch(:witness)
      RECORD_BYTES = 24
      private_constant :OFFSET, :SLOT_BYTES, :RECORD_BYTES

      # @param paths [Array<String>] the newest first
      def initialize(paths)
        @paths = paths
      end

      # @param most [Integer] number of summaries
      # @return [Array<Array<String>>] the summaries of those that were not reported yet
      def take(most) = unreported.first(most).map { |box| report(box) }

      # Of one file, whose process's end was seen.
      #
      # @param signal [Integer, Symbol] the signal, 0 for none, or :unknown
      # @return [Array<String>, nil] the summary; nil if it was reported before, or is no box
      def witnessed(signal:)
        box = unreported.first
        report(box, signal.is_a?(Integer) ? { "signal" => signal } : {}) if box
      end

      private

      def unreported
        @paths.lazy.filter_map do |path|
          box = Box.load(path, owners: [::Process.euid])
          box unless box.witness
        rescue Error
          nil # another user's, or damaged
        end
      end

      def report(box, seen = {})
        write(box.path, { "reporter" => ::Process.pid, "kills" => Kills.new.of(box), **seen }.compact)
        Autopsy::Summary.new(Autopsy::Findings.new(Box.load(box.path, owners: [::Process.euid]), alive: false)).lines
      rescue SystemCallError, Error => e
        ["the black box #{box.path} cannot be read or changed (#{Error.reason(e)})"]
      end

      def write(path, values)
        payload = values.map { |name, value| "#{name} #{value}\n" }.join.byteslice(0, SLOT_BYTES - RECORD_BYTES)
        now = ::Process.clock_gettime(::Process::CLOCK_REALTIME, :nanosecond)
        rest = [payload.bytesize, 1, now].pack("L<Q<Q<") + payload
        File.open(path, File::RDWR | File::NOFOLLOW | File::NONBLOCK | File::BINARY) do |file|
          stat = file.stat
          raise Errno::EINVAL unless stat.file? && stat.owned? && stat.size == Box::BYTES

          file.pwrite([Zlib.crc32(rest)].pack("L<") + rest, OFFSET)
          # The time of the file stays that of the process's last record, so that the oldest one gives way first.
          File.utime(stat.atime, stat.mtime, "/proc/self/fd/#{file.fileno}")
        end
      end
    end
  end
end
