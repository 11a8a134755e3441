# frozen_string_literal: true

require_relative "../system/foreign_json"
require_relative "snapshot"
require_relative "stream"

module Culet
  module Scope
    # Makes a Snapshot of a stream.
    class Builder
      SINGLE = { "process" => ProcessPart, "allocator" => AllocatorPart, "malloc" => MallocPart,
                 "ruby" => RubyPart, "objects" => ObjectsPart }.freeze
      MANY = { "mapping" => [:mappings, Mapping],
               "region" => [:regions, Region],
               "arena" => [:arenas, ArenaPart] }.freeze
      # Kinds that are kept once, and may have lists and objects in them.
      NESTED = [*SINGLE.keys, "sizes", "gc", "vm", "allocator_statistics", "reading"].freeze
      # Of the text of a record, the counts of all types of objects.
      MOST_TEXT_BYTES = 2 << 20
      DEPTH = 8
      private_constant :SINGLE, :MANY, :NESTED, :MOST_TEXT_BYTES, :DEPTH

      # @param bytes [String] one whole stream
      # @param name [String] what to call it in sentences
      def initialize(bytes, name: "the stream")
        @bytes = bytes
        @name = name
        @snapshot = Snapshot.new(mappings: [], regions: [], arenas: [], ruby_pages: [], problems: [])
        @by_id = { mapping: {}, region: {} }
        @seen = {}
      end

      # @return [Snapshot]
      # @raise [Culet::Error] when the stream is cut off, damaged, foreign or newer
      def call
        Stream.new(@bytes, name: @name).each_record { |type, payload| take(type, payload) }
        raise Malformed, "it names no process" unless @snapshot.process && @snapshot.allocator

        [@snapshot.mappings, @snapshot.regions].each { |parts| parts.sort_by!(&:start) }
        check_apart
        [*@snapshot.mappings, *@snapshot.regions].each { |part| part.check(@snapshot.process.page_bytes) }
        @snapshot
      rescue Malformed, JSON::ParserError => e
        raise Error, "#{@name} is damaged: #{e.is_a?(Malformed) ? e.message : "a record in it is no JSON"}"
      end

      private

      # Types that this version does not know are passed over.
      def take(type, payload)
        case type
        when "J" then object(parse(payload))
        when "P" then attach(:mapping, :pages_payload, payload)
        when "F" then attach(:region, :fill_payload, payload)
        when "C" then attach(:region, :chunks_payload, payload)
        when "R" then @snapshot.ruby_pages << RubyPage.parse(payload)
        end
      end

      def parse(payload)
        raise Malformed, "a record in it is too long" if payload.bytesize > MOST_TEXT_BYTES

        ForeignJson.parse(payload, max_nesting: DEPTH)
      end

      def object(fields)
        raise Malformed, "a record is not an object" unless fields.is_a?(Hash)

        kind = fields["kind"]
        check_size(kind, fields)
        if SINGLE.key?(kind) then @snapshot[kind] = SINGLE[kind].new(fields)
        elsif MANY.key?(kind) then part(kind, fields)
        else plain(kind, fields)
        end
      end

      # The objects of a text may take 25 times its memory if they are nested: so only kinds are that are kept once.
      def check_size(kind, fields)
        if NESTED.include?(kind)
          raise Malformed, "it has two records of its #{kind}" if @seen[kind]

          @seen[kind] = true
        elsif (MANY.key?(kind) || kind == "problem") && fields.each_value.any? { |value| nested?(value) }
          raise Malformed, "a record in it has a list where none belongs"
        end
      end

      def nested?(value) = value.is_a?(Hash) || value.is_a?(Array)

      def part(kind, fields)
        list, type = MANY.fetch(kind)
        part = type.new(fields)
        @snapshot[list] << part
        @by_id[kind.to_sym][part.id] = part if @by_id.key?(kind.to_sym)
      end

      def plain(kind, fields)
        case kind
        when "sizes" then @snapshot.sizes = SizesPart.new(fields).to_h
        when "gc", "vm", "allocator_statistics", "reading" then @snapshot[kind] = fields.except("kind")
        when "problem" then @snapshot.problems << fields["sentence"].to_s
        end
      end

      def attach(kind, member, payload)
        id, at = Varints.one(payload, 0)
        part = @by_id[kind][id]
        raise Malformed, "it tells of a #{kind} that it does not name" unless part

        part.public_send(:"#{member}=", payload.byteslice(at..))
      end

      # Sums of bytes by address rely on this check.
      def check_apart
        [["mappings", @snapshot.mappings], ["regions", @snapshot.regions]].each do |what, parts|
          parts.each_cons(2) { |one, other| raise Malformed, "two of its #{what} overlap" if other.start < one.end }
        end
      end
    end

    # One process at one moment, not yet unpacked: a long series is kept as these, and one after the other is looked at.
    class PackedSnapshot
      # @param name [String] what to call its stream in sentences
      # @param environment [Hash{String => String}, nil] of the process
      # @yieldreturn [String] the stream
      def initialize(name:, environment: nil, &stream)
        @name = name
        @environment = environment
        @stream = stream
      end

      # @return [String] the stream, not yet looked at
      def stream = @stream.call

      # @return [Snapshot] made anew each time
      # @raise [Culet::Error] when the stream is cut off, damaged, foreign or newer
      def snapshot = Builder.new(stream, name: @name).call.tap { |one| one.environment = @environment }
    end
  end
end
