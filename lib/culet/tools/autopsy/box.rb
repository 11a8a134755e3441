# frozen_string_literal: true

require "zlib"
require_relative "../../errors"
require_relative "../../model/levels"
require_relative "../../model/retention/holder"
require_relative "../../system/foreign_file"
require_relative "../../system/memory_group"

module Culet
  module Autopsy
    # The file of a black box (ext/culet/blackbox/format.h). Nothing in it is trusted: a record counts if its checksum
    # fits, and a number if it can be one.
    class Box
      BYTES = 262_144
      MAGIC = "culet-blackbox 1"
      # Table => offset, bytes of a slot, slots.
      PLACES = { head: [0, 4096, 1], holders: [2048, 1024, 2], end: [4096, 512, 1], witness: [4608, 512, 1],
                 fast: [5120, 320, 16], seconds: [10_240, 320, 160], running: [61_440, 320, 128],
                 finished: [102_400, 192, 128], notes: [126_976, 256, 64], profile: [143_360, 59_392, 2] }.freeze
      # Checksum, length, number, time.
      RECORD = "L<L<Q<Q<"
      RECORD_BYTES = 24
      # In a slot of `running`: the second record.
      RELABEL = 184
      UNKNOWN = (1 << 64) - 1
      # Bytes, counts and times beyond it are damage.
      MOST = 1 << 62
      # Figures of a reading, in order: the first of Culet::Reading::FIELDS. Where the extension is not built, a box can
      # be read too.
      FIGURES = %i[resident_bytes shared_bytes rollup_time pss_bytes private_dirty_bytes swapped_bytes anonymous_bytes
                   malloc_time malloc_used_bytes malloc_free_bytes malloc_metadata_bytes ruby_time live_slots slots
                   ruby_page_bytes collections major_gcs malloc_increase_bytes oldmalloc_increase_bytes
                   allocated_objects group_charged_bytes group_limit_bytes group_reclaimable_bytes group_kills
                   group_stall running events profile_bytes processor_time].freeze
      # ended, started, thread, resident before and after, objects before and after.
      EVENT_BYTES = 56
      # Requests and jobs began before the black box was read, and not before Unix.
      NANOSECONDS = 1_000_000_000
      private_constant :RECORD, :RECORD_BYTES, :RELABEL, :UNKNOWN, :MOST, :EVENT_BYTES, :NANOSECONDS

      # A record of the file: number, time, payload.
      Record = Struct.new(:number, :time, :payload)
      # The usage of the process at one time; nil: not known.
      Reading = Struct.new(:at, *FIGURES, keyword_init: true) do
        # @return [Integer, nil] bytes in use of the control group, as the memory limit counts them: without what the
        #   kernel can take back
        def group_used_bytes
          group_charged_bytes && MemoryGroup.used(group_charged_bytes, group_reclaimable_bytes.to_i)
        end

        # @return [Integer, nil] limit of the control group; nil: none, for which version 1 has a number, or not known
        def limit_bytes = (group_limit_bytes if group_limit_bytes&.between?(1, (1 << 60) - 1))

        # @return [Hash{String => Integer}] level to bytes; empty if the resident size is not known
        def levels = resident_bytes ? Levels.counted(resident_bytes, shared_bytes.to_i, self) : {}
      end
      # A request or job. ended_at: nil if it was running; thread: the kernel's number; growth_bytes: of the process's
      # resident size meanwhile; objects: allocated by the process meanwhile.
      Event = Struct.new(:number, :label, :started_at, :ended_at, :thread, :growth_bytes, :objects, keyword_init: true)
      # The largest holders at one time. seconds: since the look before; growth_bytes: of all that is retained since
      # then; nil: it was the first one. holders: those that have grown most, of the first one the largest.
      Look = Struct.new(:at, :seconds, :total_bytes, :growth_bytes, :holders)
      # kind: as of Retention::Holder, or "set"; growth_bytes: since the look before; place: where it is defined.
      Holder = Struct.new(:kind, :name, :place, :bytes, :growth_bytes) do
        # @return [String] "constant Shop::CACHE (lib/shop.rb:3)"
        def title
          words = kind == "set" ? "together: #{name}" : "#{Retention::Holder::KINDS.fetch(kind)} #{name}"
          place ? "#{words} (#{place})" : words
        end
      end
      # A limit or a step that was noted.
      Note = Struct.new(:at, :kind, :text, :bytes)

      # @param owners [Array<Integer>, nil] as of ForeignFile.read; by default any for root, else this user
      # @param follow [Boolean] as of ForeignFile.read
      # @raise [Culet::Error] when it cannot be read, or is no black box
      def self.load(path, owners: ([::Process.euid] unless ::Process.euid.zero?), follow: false)
        new(ForeignFile.read(path, owners: owners, most_bytes: BYTES, follow: follow), path)
      end

      attr_reader :path

      # @param bytes [String] content of the file
      # @param path [String] its name
      # @raise [Culet::Error] when it is no black box
      def initialize(bytes, path)
        @bytes = bytes.b
        @path = path
        raise Error, "#{path} is not a black box of culet" unless @bytes.bytesize == BYTES

        lines = record(:head, 0)&.payload.to_s.lines(chomp: true)
        raise Error, "#{path} is not a black box of culet, or its head is damaged" unless lines.shift == MAGIC

        @head = pairs(lines)
      end

      # @param name [String] of a line of the head
      # @return [String, nil] its text
      def [](name) = @head[name]

      # @return [Integer, nil] number of the process
      def pid = whole(@head["pid"])

      # @return [Integer, nil] number of the process that started it
      def parent_pid = whole(@head["parent"])

      # @return [String] name of the program
      def program = @head.fetch("program", "?")

      # @return [Time]
      def started_at = record(:head, 0).time

      # @return [Time] of the last record
      def last_at
        [started_at, readings.last&.at, *events.map { |event| event.ended_at || event.started_at }].compact.max
      end

      # @return [String, nil] how the process ended, as it said itself
      def ending = record(:end, 0)&.payload&.then { |text| clean(text) }

      # @return [Hash{String => String}, nil] how it ended, as another process has seen
      def witness = record(:witness, 0)&.then { |one| pairs(one.payload.lines(chomp: true)) }

      # @return [Array<Reading>] in order of time
      def readings = @readings ||= (records(:seconds) + records(:fast)).map { |one| reading(one) }.sort_by(&:at)

      # @return [Array<Event>] in order of their starts
      def events = @events ||= (finished + running).uniq(&:number).sort_by(&:started_at)

      # @return [Array<Note>] in order of time
      def notes = @notes ||= records(:notes).sort_by(&:number).filter_map { |one| note(one) }

      # @return [Look, nil] the last one at what keeps the memory
      def look = records(:holders).sort_by { |one| -one.number }.lazy.filter_map { |one| look_of(one) }.first

      # @return [Array<String>] streams of the profile's largest sites, the newest first
      def profiles = records(:profile).sort_by { |one| -one.number }.map(&:payload)

      private

      def record(table, index, shift = 0)
        offset, slot, = PLACES.fetch(table)
        at = offset + (index * slot) + shift
        checksum, length, number, time = @bytes.unpack(RECORD, offset: at)
        return if number.zero? || number > MOST || time > MOST || length > slot - shift - RECORD_BYTES

        whole = @bytes.byteslice(at + 4, RECORD_BYTES - 4 + length)
        return unless Zlib.crc32(whole) == checksum

        Record.new(number, Time.at(*time.divmod(NANOSECONDS), :nsec), whole.byteslice(RECORD_BYTES - 4, length))
      end

      def records(table) = Array.new(PLACES.fetch(table).last) { |index| record(table, index) }.compact

      def pairs(lines)
        lines.to_h { |line| line.split(" ", 2).then { |name, value| [clean(name.to_s), clean(value.to_s)] } }
      end

      def clean(text) = text.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[[:cntrl:]]/, "?")

      def whole(text) = (Integer(text, 10) if text&.match?(/\A\d{1,10}\z/))

      def number(value) = (value if value && value <= MOST)

      def time(value) = (Time.at(*value.divmod(NANOSECONDS), :nsec) if value&.between?(1, MOST))

      def reading(record)
        values = record.payload.unpack("Q<#{FIGURES.size}").map { |value| number(value) }
        Reading.new(at: record.time, **FIGURES.zip(values).to_h)
      end

      def finished = records(:finished).filter_map { |one| event(one, one.payload.byteslice(EVENT_BYTES..)) }

      def running
        (0...PLACES.fetch(:running).last).filter_map do |index|
          first = record(:running, index) or next
          second = record(:running, index, RELABEL)
          label = second && second.number == first.number ? second.payload : first.payload.byteslice(EVENT_BYTES..)
          event(first, label)
        end
      end

      def event(record, label)
        ended, started, thread, *figures = record.payload.byteslice(0, EVENT_BYTES).unpack("Q<7")
        before, after, objects, objects_after = figures.map { |value| number(value) }
        started_at = time(started)
        return unless label && started_at && objects_after != 0 && (ended.zero? || ended >= started)

        after ||= readings.last&.resident_bytes if ended.zero?
        objects_after ||= readings.last&.allocated_objects if ended.zero?
        Event.new(number: record.number, label: clean(label), started_at: started_at, ended_at: time(ended),
                  thread: number(thread), growth_bytes: difference(after, before),
                  objects: difference(objects_after, objects)&.clamp(0, nil))
      end

      # Lines as of ext/culet/retain/brief.h.
      LOOK = /\Alook (-|\d{1,18}) (\d{1,18}) (-|-?\d{1,18})\z/
      HOLDER = /\A([a-z_]{1,20}) (\d{1,18}) (-|-?\d{1,18}) ([^\t]*)\t(.*)\z/
      private_constant :LOOK, :HOLDER

      def look_of(record)
        first, *lines = record.payload.lines(chomp: true)
        seconds, total, growth = LOOK.match(first.to_s)&.captures
        return unless total

        Look.new(record.time, count(seconds), count(total), count(growth), lines.filter_map { |line| holder(line) })
      end

      def holder(line)
        kind, bytes, growth, name, place = HOLDER.match(line.b)&.captures
        return unless kind == "set" || Retention::Holder::KINDS.key?(kind)

        Holder.new(kind, clean(name), (clean(place) unless place.empty?), count(bytes), count(growth))
      end

      def count(text) = (Integer(text, 10) unless text == "-")

      def difference(after, before) = (after - before if after && before)

      def note(record)
        bytes, = record.payload.unpack("Q<")
        kind, text = clean(record.payload.byteslice(8..).to_s).split(" ", 2)
        Note.new(record.time, kind, text.to_s, number(bytes)) if %w[limit step].include?(kind)
      end
    end
  end
end
