# frozen_string_literal: true

require "stringio"
require "zlib"
require_relative "protobuf"

module Culet
  module Profile
    # The profile for `go tool pprof` and everything else that reads pprof: gzipped, by google/pprof's profile.proto.
    #
    # Samples have four values: objects and bytes allocated, objects and bytes in use.
    class Pprof
      TYPES = [%w[alloc_objects count], %w[alloc_space bytes], %w[inuse_objects count], %w[inuse_space bytes]].freeze
      # The views behind the two pairs of values; the second follows from the chosen view.
      ALLOCATED = :allocated
      private_constant :TYPES, :ALLOCATED

      # @param data [Data]
      # @param view [Symbol, String] what is "in use"; :allocated: the default type is alloc_space
      # @param from [Time, nil] start of the period; nil: that of the profile
      # @param to [Time, nil] its end
      def initialize(data, view: :live, from: nil, to: nil)
        @data = data
        @view = view.to_sym
        @from = from || data.recordings.map(&:started_at).min
        @to = to || data.recordings.map(&:taken_at).max
        @strings = { "" => 0 }
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
        samples.each { |key, values| sample(body, key, values) }
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
          inner.packed(1, [*(location([nil, nil, class_name, nil, nil]) if class_name),
                           *frames.map { |frame| @numbers[frame] ||= location(frame.to_a) }])
          inner.packed(2, values)
          labels.each { |name, value| inner.message(3) { |one| one.number(1, string(name)).number(2, string(value)) } }
        end
      end

      def location(frame)
        file, line, name, _gem, library = frame
        function = @functions[[name.to_s, (file || library).to_s]] ||= @functions.size + 1
        @locations[[function, line.to_i]] ||= @locations.size + 1
      end

      def locations(body)
        @locations.each do |(function, line), id|
          body.message(4) do |inner|
            inner.number(1, id)
            inner.message(4) { |one| one.number(1, function).number(2, line) }
          end
        end
      end

      def functions(body)
        @functions.each do |(name, file), id|
          body.message(5) do |inner|
            inner.number(1, id).number(2, string(name)).number(3, string(name)).number(4, string(file))
          end
        end
      end

      def times(body)
        from = (@from.to_r * 1_000_000_000).to_i
        body.number(9, from).number(10, [(@to.to_r * 1_000_000_000).to_i - from, 0].max)
        value_type(body, 11, "space", "bytes")
        body.number(12, @data.sample_bytes)
        body.number(14, string(@view == ALLOCATED ? "alloc_space" : "inuse_space"))
      end
    end
  end
end
