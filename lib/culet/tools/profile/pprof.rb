# frozen_string_literal: true

require "set"
require "stringio"
require "zlib"
require_relative "../../version"
require_relative "../../model/profile/address_space"
require_relative "../../scope/varints"

module Culet
  module Profile
    # Writes messages of Protocol Buffers (encoding.md of the protobuf documentation): fields of varints and of bytes.
    class Protobuf
      BYTES = 2
      private_constant :BYTES

      def initialize
        @text = +"".b
      end

      # @return [String] the message
      def to_s = @text

      # Fields of value 0 are left out, as the format's default.
      #
      # @param field [Integer]
      # @param value [Integer] signed, 64 bits
      # @return [Protobuf] itself
      def number(field, value)
        varint(field << 3).varint(value & 0xffff_ffff_ffff_ffff) unless value.zero?
        self
      end

      # @param field [Integer]
      # @return [Protobuf] itself
      def bytes(field, text)
        varint((field << 3) | BYTES).varint(text.bytesize)
        @text << text.b
        self
      end

      # @param field [Integer]
      # @param values [Array<Integer>] one packed field
      # @return [Protobuf] itself
      def packed(field, values)
        inner = Protobuf.new
        values.each { |value| inner.varint(value & 0xffff_ffff_ffff_ffff) }
        values.empty? ? self : bytes(field, inner.to_s)
      end

      # @param field [Integer]
      # @yieldparam message [Protobuf] the message inside
      # @return [Protobuf] itself
      def message(field)
        inner = Protobuf.new
        yield inner
        bytes(field, inner.to_s)
      end

      # @param value [Integer] not negative
      # @return [Protobuf] itself
      def varint(value)
        Scope::Varints.append(@text, value)
        self
      end
    end

    # The profile for `go tool pprof` and everything else that reads pprof: gzipped, by google/pprof's profile.proto.
    #
    # Samples have four values: objects and bytes allocated, objects and bytes in use. Native frames have addresses in
    # the mappings of their files. Those whose functions are not known here have nothing else, so that a reader with
    # debugging symbols finds them by build id.
    class Pprof
      TYPES = [%w[alloc_objects count], %w[alloc_space bytes], %w[inuse_objects count], %w[inuse_space bytes]].freeze
      # The views behind the two pairs of values; the second follows from the chosen view.
      ALLOCATED = :allocated
      # A row of locations: of its mapping, function and lines, those that are known.
      Location = Struct.new(:mapping, :address, :function, :line)
      SHARED_LIBRARY = /\.so(?:\.|\z)/
      private_constant :TYPES, :ALLOCATED, :Location, :SHARED_LIBRARY

      # @param view [Symbol, String] what is "in use"; :allocated: the default type is alloc_space
      # @param from [Time, nil] start of the period; nil: that of the profile
      # @param to [Time, nil] its end
      def initialize(data, view: :live, from: nil, to: nil)
        @space = AddressSpace.new
        @data = data.with_addresses(@space)
        @view = view.to_sym
        @from = from || data.recordings.map(&:started_at).min
        @to = to || data.recordings.map(&:taken_at).max
        @strings = { "" => 0 }
        @mappings = {}.compare_by_identity
        @functions = {}
        @locations = {}
        @numbers = {}
      end

      # @return [String] gzipped; the same for the same data
      def to_s
        output = StringIO.new("".b)
        gzip = Zlib::GzipWriter.new(output)
        gzip.mtime = 1
        gzip.write(message)
        gzip.close
        output.string
      end

      private

      def string(text) = @strings[text.to_s] ||= @strings.size

      def message
        body = Protobuf.new
        TYPES.each { |type, unit| value_type(body, 1, type, unit) }
        # Readers take the first mapping for that of the program.
        @data.recordings.first(1).each { |recording| program(recording) }
        samples.each { |key, values| sample(body, key, values) }
        mappings(body)
        locations(body)
        functions(body)
        tail = Protobuf.new
        times(tail)
        # The table of strings is complete only now.
        @strings.each_key { |text| body.bytes(6, text) }
        body.to_s + tail.to_s
      end

      def value_type(body, field, type, unit)
        body.message(field) { |inner| inner.number(1, string(type)).number(2, string(unit)) }
      end

      def program(recording)
        main = recording.mappings.find { |one| one.path.start_with?("/") && !one.path.match?(SHARED_LIBRARY) }
        mapping(@space.place(main)) if main
      end

      def mapping(place) = @mappings[place] ||= @mappings.size + 1

      # Sites of both pairs of values, by stack, class and labels.
      def samples
        sums = Hash.new { |hash, key| hash[key] = [0, 0, 0, 0] }
        add(sums, ALLOCATED, 0)
        add(sums, @view == ALLOCATED ? :live : @view, 2)
        sums.reject { |_, values| values.all?(&:zero?) }
      end

      def add(sums, view, at)
        @data.sites(view).each do |site|
          values = sums[[site.frames, site.class_name, site.labels]]
          values[at] += site.blocks.round
          values[at + 1] += site.bytes.round
        end
      end

      def sample(body, (frames, class_name, labels), values)
        body.message(2) do |inner|
          inner.packed(1, [*(number(Location.new(nil, 0, function(class_name), 0)) if class_name),
                           *frames.map { |frame| @numbers[frame] ||= number(location(frame)) }])
          inner.packed(2, values)
          labels.each { |name, value| inner.message(3) { |one| one.number(1, string(name)).number(2, string(value)) } }
        end
      end

      def location(frame)
        place = frame.mapping
        name = function(frame.method.to_s, frame.file.to_s) unless place
        return Location.new(nil, frame.address.to_i, name, frame.line.to_i) unless place

        known = function(frame.method, "", frame.method) unless frame.nameless?
        Location.new(mapping(place), frame.address, known, 0)
      end

      # Ruby's functions have no name in a symbol table. pprof takes a system name for one of C++ and leaves out what is
      # in angle brackets: "<main>" would be nothing.
      def function(name, file = "", system_name = "") = @functions[[name, file, system_name]] ||= @functions.size + 1

      def number(location) = @locations[location] ||= @locations.size + 1

      def mappings(body)
        nameless = @locations.each_key.reject(&:function).to_set(&:mapping)
        @mappings.each do |place, id|
          body.message(3) do |inner|
            inner.number(1, id).number(2, place.start).number(3, place.end).number(4, place.offset)
            inner.number(5, string(place.path)).number(6, string(place.build_id))
            # "All functions are known": else a reader looks for their names.
            inner.number(7, 1) unless nameless.include?(id)
          end
        end
      end

      def locations(body)
        @locations.each do |location, id|
          body.message(4) do |inner|
            inner.number(1, id).number(2, location.mapping.to_i).number(3, location.address)
            next unless location.function

            inner.message(4) { |one| one.number(1, location.function).number(2, location.line) }
          end
        end
      end

      def functions(body)
        @functions.each do |(name, file, system_name), id|
          body.message(5) do |inner|
            inner.number(1, id).number(2, string(name)).number(3, string(system_name)).number(4, string(file))
          end
        end
      end

      def times(body)
        from = (@from.to_r * 1_000_000_000).to_i
        body.number(9, from).number(10, [(@to.to_r * 1_000_000_000).to_i - from, 0].max)
        value_type(body, 11, "space", "bytes")
        body.number(12, @data.sample_bytes)
        body.packed(13, comments.map { |text| string(text) })
        body.number(14, string(@view == ALLOCATED ? "alloc_space" : "inuse_space"))
      end

      def comments
        names = @data.recordings.map(&:name)
        [*names, "in use: #{@view == ALLOCATED ? :live : @view}",
         *("difference of two profiles" if @data.difference?),
         *("samples without room: #{@data.lost}" if @data.lost.positive?), "culet #{VERSION}"]
      end
    end
  end
end
