# frozen_string_literal: true

require_relative "../../errors"
require_relative "births"
require_relative "estimate"
require_relative "../../system/input_file"

module Culet
  module Profile
    # The views of a profile, by the letter of the stream.
    LETTERS = { "a" => :allocated, "l" => :live, "p" => :peak, "g" => :growth, "i" => :inherited }.freeze
    private_constant :LETTERS

    # Views that a report can show.
    VIEWS = %w[live allocated peak growth].freeze

    # Keys by which a view can be added up.
    KINDS = %w[line method file gem class library label].freeze

    # Largest stream accepted, in bytes. Of full tables (sampler/core/tables.h, stacks.h) it has 30 MB.
    STREAM_BYTES = 64 << 20

    # The stream of one process (sampler/core/profile.h), every field of it checked: it may come from anyone.
    class Recording
      FIRST = "culet-profile 1"
      LONGEST_LINE = 65_536
      MOST_ITEMS = 1_000_000
      # Frames of a stack; culet's have at most 256.
      MOST_FRAMES = 1024
      # Maximum number of parts, the frames and labels of all sites: FREE_PARTS and PARTS_PER_BYTE of the stream, at
      # most MOST_PARTS. A frame counts once more for each NAME_BYTES of its names. Full tables have 2 parts per byte.
      FREE_PARTS = 1_000_000
      PARTS_PER_BYTE = 4
      MOST_PARTS = 1 << 26
      NAME_BYTES = 128
      # A site's sums: the letter of the view, samples, blocks, bytes, variance.
      SUMS = 5
      # Fields of a shared sample: number of its site from 1 on, id, 1 if it was inherited, weight, size.
      SHARED = 5
      DECIMAL = /\A\d{1,20}\z/
      HEX = /\A\h{1,16}\z/
      REAL = /\A\d{1,20}(?:\.\d{1,6})?(?:e\d{1,2})?\z/
      BUILD_ID = /\A(?:-|\h{1,128})\z/
      ESCAPE = /\\x(\h\h)/
      private_constant :FIRST, :LONGEST_LINE, :MOST_ITEMS, :MOST_FRAMES, :FREE_PARTS, :PARTS_PER_BYTE,
                       :MOST_PARTS, :NAME_BYTES, :SUMS, :DECIMAL, :HEX, :REAL, :BUILD_ID, :ESCAPE

      # A word of a stack: its kind, and of a Ruby frame its number and line.
      WORD_SHIFT = 56
      RUBY = 1
      FRAME_SHIFT = 24
      FRAME_MASK = 0xffffffff

      # An executable mapping. start, end, offset in bytes.
      Mapping = Struct.new(:start, :end, :offset, :build_id, :path)
      # A Ruby frame: path, first line, label.
      RubyFrame = Struct.new(:path, :line, :label)
      # A site: kind is :malloc or :object; sums: view => Estimate; births: Births, nil where there is no growth.
      RawSite = Struct.new(:kind, :stack, :label, :type, :sums, :births)

      # Counts of samples since the start: added to a site, and freed since; lost for want of a site or a sample; due
      # but not taken, inside the profile, in a thread that forks, and without memory.
      Account = Struct.new(:added, :freed, :no_site, :no_sample, :inside, :forking, :no_memory)

      # @return [String] name of the source
      attr_reader :name
      # @return [Symbol, nil] what became of the process, as of Stream
      attr_reader :state
      attr_reader :pid
      # @return [Integer] mean distance of samples in bytes
      attr_reader :sample_bytes
      # @return [Time]
      attr_reader :started_at, :taken_at
      # @return [Integer] forks between the start of the profile and this process
      attr_reader :generation
      # @return [Integer] major collections since the start
      attr_reader :epoch
      # @return [Integer] samples that found no room
      attr_reader :lost
      # @return [Account, nil] nil in a black box
      attr_reader :account
      # @return [Integer] resident bytes of the heap, and the largest of them
      attr_reader :rss_bytes, :peak_rss_bytes
      # @return [Float] by which the sums of objects are multiplied
      attr_reader :object_scale

      # @return [Float, nil] estimated bytes of all sites, where the stream has the largest ones only: in a black box
      def total_bytes = @totals&.then { |malloc, objects| malloc + (objects * object_scale) }

      # @return [Boolean] whether the bytes of objects have those of their buffers in the transient heap
      def buffers? = @buffers

      # @return [Array<Mapping>] sorted by address
      attr_reader :mappings
      # @return [Hash{Integer => RubyFrame}]
      attr_reader :frames
      # @return [Hash{Integer => Hash{String => String}}] label sets
      attr_reader :labels
      # @return [Hash{Integer => String}] classes
      attr_reader :types
      # @return [Array<RawSite>]
      attr_reader :sites
      # @return [Array<Numeric>] SHARED fields for each live sample that other processes may have
      attr_reader :shared
      # @return [Float] seconds from the base of growth until the last sample that could survive; 0: none could
      attr_reader :span_seconds
      # @return [Integer] resident bytes of the process at the base of growth, and at the end; 0: unknown
      attr_reader :base_rss_bytes, :taken_rss_bytes
      # @return [Integer, nil] estimated bytes of large blocks, and what is resident of them; nil: not known, so all of
      #   them counts
      attr_reader :large_bytes, :large_resident_bytes

      # @param text [String] the stream
      # @param name [String] of its source
      # @param state [Symbol, nil] as of Stream
      # @param ended_at [Time, nil] as of Stream
      # @raise [Culet::Error] when it is damaged
      def initialize(text, name:, state: nil, ended_at: nil)
        @name = name
        @state = state
        @ended_at = ended_at
        @mappings = []
        @frames = {}
        @labels = {}
        @types = {}
        @parents = { 0 => nil }
        @words = {}
        @depths = { 0 => 0 }
        @sites = []
        @shared = []
        @rss_bytes = @peak_rss_bytes = @base_rss_bytes = @taken_rss_bytes = 0
        @object_scale = 1.0
        @buffers = false
        @span_seconds = 0.0
        @bytes = text.bytesize
        read(text.dup.force_encoding(Encoding::BINARY))
      end

      # @return [Time, nil] when the process ended; nil: not known, or it runs
      def ended_at = %i[exited replaced].include?(state) ? taken_at : @ended_at

      # @return [Integer, nil] by how much the resident memory has grown since the base of growth; nil: not known
      def rss_growth_bytes = (taken_rss_bytes - base_rss_bytes if [taken_rss_bytes, base_rss_bytes].all?(&:positive?))

      # @param stack [Integer] number of a stack
      # @return [Array<Integer>] its words, innermost first
      def stack(stack)
        words = []
        until stack.zero?
          words << @words.fetch(stack)
          stack = @parents.fetch(stack)
        end
        words
      end

      private

      def read(text)
        lines = text.each_line(chomp: true)
        damaged("is not a profile of culet, or of another version") unless line_of(lines) == FIRST
        count = 1
        loop do
          line = line_of(lines) or damaged("ends too early")
          break finish(line, count) if line.start_with?("E ")

          count += 1
          damaged("has more than #{MOST_ITEMS} lines") if count > MOST_ITEMS
          add(line)
        end
      end

      def line_of(lines)
        line = lines.next
        line.bytesize <= LONGEST_LINE ? line : damaged("has a line of #{line.bytesize} bytes")
      rescue StopIteration
        nil
      end

      def finish(line, count)
        damaged("has #{count} lines where its end names another number") unless decimal(line.split[1]) == count
        damaged("does not say which process it is of") unless @pid
        @mappings.sort_by!(&:start)
        check_parts
      end

      # A few bytes of a site stand for a whole stack, so the size of the stream does not bound what is made of it.
      def check_parts
        most = [FREE_PARTS + (PARTS_PER_BYTE * @bytes), MOST_PARTS].min
        sums = { 0 => 0 }
        @words.each { |id, word| sums[id] = sums[@parents[id]] + parts(word) }
        found = @sites.sum { |site| sums[site.stack] + @labels.fetch(site.label, {}).size }
        damaged("has more frames in its sites than its size allows") if found > most
      end

      def parts(word)
        frame = @frames[(word >> FRAME_SHIFT) & FRAME_MASK] if word >> WORD_SHIFT == RUBY
        frame ? 1 + ((frame.path.bytesize + frame.label.bytesize) / NAME_BYTES) : 1
      end

      def damaged(what) = raise(Error, "#{@name} #{what}")

      def add(line)
        case line[0, 2]
        when "P " then process(line)
        when "A " then count_samples(line)
        when "B " then @totals = numbers(line, 2)
        when "R " then @rss_bytes, @peak_rss_bytes = numbers(line, 2)
        when "O " then objects(line)
        when "M " then mapping(line)
        when "F " then frame(line)
        when "L " then label(line)
        when "T " then type(line)
        when "K " then node(line)
        when "S " then site(line)
        when "I " then shared_sample(line)
        when "G " then base(line)
        when "W " then births(line)
        when "D " then change(line)
        when "U " then @large_bytes, @large_resident_bytes = numbers(line, 2)
        end
      end

      def process(line)
        damaged("describes its process twice") if @pid
        @pid, @sample_bytes, started, taken, @epoch, @generation, @lost = numbers(line, 7)
        damaged("has a sample distance of 0") if @sample_bytes.zero?
        @started_at = time(started)
        @taken_at = time(taken)
      end

      def time(nanoseconds) = Time.at(*nanoseconds.divmod(1_000_000_000), :nsec)

      def count_samples(line)
        damaged("counts its samples twice") if @account
        @account = Account.new(*numbers(line, Account.members.size))
      end

      def objects(line)
        allocated, estimated, buffers = numbers(line, 3)
        damaged("has objects that nothing estimates") if estimated.zero?
        @object_scale = allocated.fdiv(estimated)
        @buffers = buffers == 1
      end

      def base(line)
        _, span, @base_rss_bytes, @taken_rss_bytes = numbers(line, 4)
        @span_seconds = span / 1e9
      end

      def numbers(line, count)
        fields = line.split(" ", count + 2)[1, count]
        damaged("has an incomplete line #{line[0]}") unless fields.size == count
        fields.map { |field| decimal(field) }
      end

      def decimal(text)
        value = text.to_s.match?(DECIMAL) ? Integer(text, 10) : damaged("has a number that is none")
        value <= 1 << 63 ? value : damaged("has a number that is too large")
      end

      def hex(text) = text.to_s.match?(HEX) ? Integer(text, 16) : damaged("has an address that is none")

      def real(text)
        value = text.to_s.match?(REAL) ? Float(text) : damaged("has a sum that is none")
        value.finite? && value < 1e60 ? value : damaged("has a sum that is too large")
      end

      def text(escaped)
        escaped.to_s.gsub(ESCAPE) { Regexp.last_match(1).hex.chr }.force_encoding(Encoding::UTF_8).scrub("?")
      end

      def mapping(line)
        _, start, finish, offset, build_id, path = line.split(" ", 6)
        damaged("has a mapping that ends before it starts") if hex(finish) <= hex(start)
        damaged("has a build id that is none") unless build_id.to_s.match?(BUILD_ID)
        @mappings << Mapping.new(hex(start), hex(finish), hex(offset), build_id == "-" ? nil : build_id, text(path))
      end

      def frame(line)
        _, id, first, rest = line.split(" ", 4)
        path, label = rest.to_s.split("\t", 2)
        damaged("has a frame twice") if @frames.key?(decimal(id))
        @frames[decimal(id)] = RubyFrame.new(text(path), decimal(first), text(label))
      end

      def label(line)
        _, id, rest = line.split(" ", 3)
        pairs = rest.to_s.split("\t").map { |pair| pair.split("=", 2).map { |part| text(part) } }
        damaged("has a label without a value") unless pairs.all? { |pair| pair.size == 2 }
        damaged("has a label set twice") if @labels.key?(decimal(id))
        @labels[decimal(id)] = pairs.to_h
      end

      def type(line)
        _, id, rest = line.split(" ", 3)
        damaged("has a type twice") if @types.key?(decimal(id))
        @types[decimal(id)] = text(rest)
      end

      # A parent comes first, so there is no circle.
      def node(line)
        _, id, parent, word = line.split(" ", 4)
        id = decimal(id)
        parent = decimal(parent)
        damaged("has a stack twice") if @parents.key?(id)
        damaged("has a stack without its caller") unless @parents.key?(parent)
        depth = @depths[parent] + 1
        damaged("has a stack of more than #{MOST_FRAMES} frames") if depth > MOST_FRAMES
        @depths[id] = depth
        @parents[id] = parent
        @words[id] = hex(word)
      end

      def site(line)
        _, kind, stack, label, type, *sums = line.split
        damaged("has a site of an unknown kind") unless %w[m o].include?(kind)
        stack = decimal(stack)
        damaged("has a site without a stack") unless @parents.key?(stack)
        damaged("has an incomplete site") unless (sums.size % SUMS).zero?
        @sites << RawSite.new(kind == "o" ? :object : :malloc, stack, decimal(label), decimal(type),
                              sums.each_slice(SUMS).to_h { |group| sum(group) })
      end

      def shared_sample(line)
        _, site, id, inherited, weight, size = line.split
        site = decimal(site)
        damaged("has a sample without a site") unless site.between?(1, @sites.size)
        @shared.push(site, decimal(id), decimal(inherited), real(weight), decimal(size))
      end

      # When the survivors of a site were allocated.
      def births(line)
        number, site, groups = growth(line)
        periods = groups.to_h { |group| [period(group.first), estimate(group)] }
        former = site.births || Births.new
        @sites[number - 1].births = Births.new(periods, former.born, former.dropped)
      end

      # Reads the growth of a site.
      def change(line)
        number, site, groups = growth(line)
        sums = groups.to_h { |group| [group.first, estimate(group)] }
        damaged("has a change without a sign") unless (sums.keys - %w[+ -]).empty?
        @sites[number - 1].births =
          Births.new(site.births ? site.births.periods : {}, *%w[+ -].map { |sign| sums[sign] || Estimate.new })
      end

      def growth(line)
        _, site, *groups = line.split
        site = decimal(site)
        damaged("has growth without a site") unless site.between?(1, @sites.size)
        damaged("has incomplete growth") unless (groups.size % SUMS).zero? && groups.size <= SUMS * Births::PERIODS
        [site, @sites[site - 1], groups.each_slice(SUMS)]
      end

      def period(text)
        number = decimal(text)
        number < Births::PERIODS ? number : damaged("has a period beyond the last one")
      end

      def sum(group)
        view = LETTERS.fetch(group.first) { damaged("has an unknown view") }
        [view, estimate(group)]
      end

      def estimate(group) = Estimate.new(decimal(group[1]), *group[2, 3].map { |number| real(number) })
    end

    # The text that one process wrote (sampler/core/profile.h), and where it is from.
    #
    #   state      :running   the process ran on
    #              :exited    it wrote the stream at its end
    #              :replaced  it wrote the stream before exec
    #              :ended     it has ended since, and was not asked again
    #              nil        not known: from a file
    #   ended_at   of :ended, the time when that was noticed
    Stream = Struct.new(:source, :pid, :text, :state, :ended_at) do
      # @param path [String] a file of `culet profile --save` or Culet::Profile.write
      # @return [Stream] without a process number
      # @raise [Culet::Error] when the file cannot be read
      def self.load(path)
        new(path, nil, InputFile.read(path, what: "a file of `culet profile --save`", most_bytes: STREAM_BYTES))
      end

      # @raise [Culet::Error] when it is damaged
      def recording = Recording.new(text, name: source, state: state, ended_at: ended_at)

      # @return [Array<String>, nil] what tells the profile of a process from a later one, of the same number or of its
      #   own
      def identity = text.match(/^P (\d+) \d+ (\d+) \d+ \d+ (\d+) /n)&.captures
    end
  end
end
