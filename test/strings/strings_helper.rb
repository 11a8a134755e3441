# frozen_string_literal: true

require "agent/agent_helper"
require "culet/tools/strings"
require "culet/tools/strings/html"

# Dumps made line by line, and what is found in them.
module StringsHelper
  include AgentHelper

  CLASS = "0x1000"

  # A line of a dump, as Ruby 3.1 writes it. Of a string that has a buffer, 40 bytes are its slot.
  #
  # @param value [String, nil] nil: the dump does not tell it
  # @param fields [Hash] further members; nil: left out
  def line(address, value, **fields)
    bytes = value.to_s.bytesize
    embedded = bytes <= 23
    members = { address: format("0x%x", address), type: "STRING", class: CLASS, embedded: (true if embedded), bytesize: bytes, value: value, encoding: "UTF-8",
                memsize: embedded ? 40 : 41 + bytes }.merge(fields).compact
    "{#{members.map { |name, one| "#{JSON.generate(name.to_s)}:#{JSON.generate(one)}" }.join(", ")}}\n"
  end

  # @param values [Array<String>] texts, each at an address of its own
  # @return [String] a dump of them, with objects of other types between
  def dump(*values)
    values.each_with_index.map do |value, index|
      array = %({"address":"0x#{(0x900000 + (index * 40)).to_s(16)}", "type":"ARRAY", "memsize":40}\n)
      line(0x10000 + (index * 40), value) + array
    end.join
  end

  # @return [Culet::Strings::Findings] of a dump
  def findings(text, content: true, top: 50)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "heap.json")
      File.binwrite(path, text)
      return Culet::Strings.findings(Culet::Strings::Dump.new(path), top: top, content: content)
    end
  end

  # Yields the path of a dump that another Ruby made of itself, after a script.
  def with_real_dump(script, tracing: false)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "heap.json")
      source = "#{"ObjectSpace.trace_object_allocations_start\n" if tracing}#{script}\nGC.start\n" \
               "File.open(ARGV.first, 'w') { |file| ObjectSpace.dump_all(output: file) }"
      out, err, status = run_program(RbConfig.ruby, "-w", "-robjspace", "-e", source, path, env: TestHelper::NEUTRAL)
      assert_equal [true, "", ""], [status.success?, err, out]
      yield path
    end
  end

  # @return [Hash] of a document's groups, the one whose text begins so
  def group(document, start)
    groups = document["groups"]
    groups.find { |one| one["sample"].to_s.start_with?("\"#{start}") } || flunk("no group of #{start}: #{groups}")
  end
end
