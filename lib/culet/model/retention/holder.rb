# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "path"

module Culet
  module Retention
    # Instances of one class: their number, and the bytes of their slots and buffers.
    Instances = Struct.new(:name, :objects, :bytes)

    # A holder of memory: a reference that does not come from an object, such as a constant, or a class's. Its bytes
    # would be free without the reference.
    class Holder
      # Kind => its words. A class has those of Ruby's own.
      KINDS = { "constant" => "constant", "class_variable" => "class variable", "global" => "global variable",
                "thread_local" => "thread-local variable", "fiber_local" => "fiber-local variable",
                "closure" => "closure", "instance_variable" => "instance variable",
                "symbol_table" => "symbol table", "finalizer" => "finalizer", "native" => "native extension",
                "stack" => "stack", "method" => "code of", "vm" => "Ruby itself:", "other" => "root" }.freeze
      # Words on the stack may be left over from calls that have returned.
      STALE = "stack"
      # Kinds of holders of a running request.
      RUNNING = [STALE, "thread_local", "fiber_local"].freeze
      # The file of TOPLEVEL_BINDING, as Ruby has it.
      MAIN = "<main>"
      private_constant :STALE, :RUNNING, :MAIN

      # @param fields [Hash{String => Object}] as in Analysis::SHAPE
      def initialize(fields)
        @fields = fields
      end

      # id: its number in the analysis; kind: a key of KINDS; file, line: where it is defined, or nil; address: of the
      # object that it leads to, "0x7f...", or nil; bytes, objects: that it alone keeps, slots and malloc
      %w[id kind name file line address bytes objects].each { |key| define_method(key) { @fields[key] } }

      # @return [String] the class of that object
      def class_name = @fields["class"]

      # @return [Array<Instances>] of what it keeps, the largest first
      def classes = @classes ||= @fields["classes"].map { |row| Instances.new(*row) }

      # @return [Path] to where most of its bytes are
      def path = @path ||= Path.new(@fields["path"])

      # @return [Array<Path>]
      def paths = [path]

      # @return [Boolean] whether the reference may be left over from a call that has returned
      def stale? = kind == STALE

      # @return [Boolean] whether it belongs to a thread, and may lead to what others keep for as long as a call runs
      def running? = RUNNING.include?(kind)

      # Identifies the holder in several analyses, without addresses, which are reused for other objects.
      #
      # @return [Array]
      def key = [kind, name, file, line]

      # @return [String] "constant Shop::CACHE (shop.rb:12)"
      def title
        words = KINDS.fetch(kind)
        words = name.downcase.start_with?(words) ? name : "#{words} #{name}".strip unless kind == "symbol_table"
        notes = [(place unless name.include?(place.to_s)), ("may be stale" if stale?),
                 ("local variables of the main program" if file == MAIN)].compact
        Text::Lines.printable(notes.empty? ? words : "#{words} (#{notes.join("; ")})")
      end

      # @return [String, nil] FILE:LINE
      def place = file && file != MAIN ? [file, line].compact.join(":") : nil
    end

    # Holders that keep objects together: no one of them keeps these alone, and they stay until all have released them.
    class HolderSet
      # Holders that a sentence names.
      NAMED = 3
      private_constant :NAMED

      # @return [Array<Holder>] the known ones of its holders
      attr_reader :holders

      # @param fields [Hash{String => Object}] as in Analysis::SHAPE
      # @param holders [Hash{Integer => Holder}] all by their numbers
      def initialize(fields, holders)
        @fields = fields
        @holders = fields["holders"].filter_map { |id| holders[id] }
      end

      # @return [Integer] how many holders it has
      def size = @fields["holders"].size

      %w[bytes objects].each { |key| define_method(key) { @fields[key] } }

      # @return [Array<Instances>]
      def classes = @classes ||= @fields["classes"].map { |row| Instances.new(*row) }

      # @return [Array<Path>] one for each holder, of at most three
      def paths = @paths ||= @fields["paths"].map { |steps| Path.new(steps) }

      # @return [Array] as of Holder
      def key = ["set", *holders.map(&:key).sort_by(&:inspect)]

      # @return [Array<String>] of the known holders
      def names = holders.map(&:name)

      # @return [String] "A::LIST and B::INDEX"
      def title
        known = holders.first(NAMED).map { |one| Text::Lines.printable(one.name) }
        more = size - known.size
        return Text::Lines.list(known) if more.zero?

        Text::Lines.list([*known, "#{more} more #{more == 1 ? "holder" : "holders"}"])
      end
      alias name title

      # @return [nil] several holders have no common place
      def place = nil
    end
  end
end
