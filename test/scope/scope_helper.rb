# frozen_string_literal: true

require "test_helper"
require "json"
require "zlib"
require "culet/allocators"
require "culet/cli"
require "culet/scope"

# What the tests of snapshots share.
module ScopeHelper
  PAGE_BYTES = 4096

  # Writes streams by the description in reader/format.h, for what no real process gives: broken ones.
  class Writer
    def initialize(header: "culet-scope 1\n\0\0")
      @bytes = header.b
    end

    def object(kind, fields) = record("J", JSON.generate({ "kind" => kind, **fields }))

    def numbers(type, *values, tail: "") = record(type, values.map { |value| varint(value) }.join + tail)

    def record(type, payload)
      @bytes << type.b << varint(payload.bytesize) << payload.b
      self
    end

    # @return [String] the stream with its checksum
    def close
      record("E", [Zlib.crc32(@bytes)].pack("V"))
      @bytes
    end

    private

    def varint(value)
      bytes = []
      loop do
        more = value >> 7
        bytes << ((value & 0x7f) | (more.zero? ? 0 : 0x80))
        return bytes.pack("C*") if more.zero?

        value = more
      end
    end
  end

  PROCESS = { "pid" => 7, "name" => "made", "program" => "/bin/made", "page_bytes" => PAGE_BYTES, "bits" => 64, "mode" => "sliced", "threads" => 1,
              "time" => 1_700_000_000.5, "rss_bytes" => 5 * PAGE_BYTES, "pss_bytes" => 5 * PAGE_BYTES, "shared_bytes" => 0,
              "private_dirty_bytes" => 5 * PAGE_BYTES, "swap_bytes" => 0 }.freeze
  ALLOCATOR = { "name" => "glibc", "library" => "/lib/libc.so.6", "level" => "blocks", "why" => nil }.freeze
  MAPPING = { "id" => 0, "start" => 0x10000, "end" => 0x18000, "perms" => "rw-p", "offset" => 0, "inode" => 0,
              "path" => "[heap]", "rss_bytes" => 5 * PAGE_BYTES,
              "pss_bytes" => 5 * PAGE_BYTES, "shared_clean_bytes" => 0, "shared_dirty_bytes" => 0, "private_clean_bytes" => 0,
              "private_dirty_bytes" => 5 * PAGE_BYTES, "swap_bytes" => 0, "use" => "malloc", "label" => "" }.freeze
  REGION = { "id" => 0, "arena" => 0, "holds" => "main", "start" => 0x10000, "end" => 0x17000, "mapping" => 0 }.freeze

  # @return [Hash{String => String}] what makes a program run on that allocator
  def on(allocator) = Culet::Allocators.parse(allocator).environment({})

  # @yieldparam writer [Writer] for further records
  # @return [String] a small stream
  def small_stream(process: PROCESS, allocator: ALLOCATOR, mapping: MAPPING, region: REGION)
    writer = Writer.new.object("process", process).object("allocator", allocator).object("mapping", mapping)
    writer.numbers("P", 0, 5, 5, 3, 0).object("region", region).numbers("F", 0, 4, 4096, 1, 1000, 2, 0)
    yield writer if block_given?
    writer.close
  end

  # @return [Hash] what a verb printed with --json
  def json(*words) = JSON.parse(assert_culet(*words, "--json").first)
end
