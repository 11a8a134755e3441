# frozen_string_literal: true

require "json"
require_relative "../../errors"
require_relative "feature"

module Culet
  module Requires
    # What one process recorded: the tree of its requires, and its compiled code.
    class Log
      # The compiled code of one file, or of one name that evaluated code bears.
      Code = Struct.new(:path, :eval, :bytes, :count)

      VERSION = 1
      private_constant :VERSION

      # @param path [String] a file of the recorder's
      # @return [Log]
      # @raise [Culet::Error] when it is none
      def self.read(path) = new(File.binread(path), name: path)

      # @param text [String] lines of JSON; behind the last one there may be zeros
      # @param name [String] for errors
      # @raise [Culet::Error]
      def initialize(text, name: "the recording")
        @name = name
        @features = {}
        @roots = []
        @codes = []
        @complete = false
        # The last line may be half written, where the process was killed.
        text.delete("\0").force_encoding(Encoding::UTF_8).scrub.each_line { |line| take(JSON.parse(line)) if line.end_with?("\n") }
        raise Error, "#{name} is no recording of requires" unless @process

        roots.each { |root| conclude(root) }
        give_code
      rescue JSON::ParserError, TypeError, ArgumentError, KeyError => e
        raise Error, "#{name} is damaged: #{e.message.lines.first&.chomp}"
      end

      # @return [Array<Feature>] those that nothing required
      attr_reader :roots
      # @return [Array<Code>] by file, of those that were there at the end
      attr_reader :codes
      # @return [Float, nil] how long the process ran, from the first moment of the recording; nil: its end was not seen
      attr_reader :seconds

      # @return [Boolean] whether it recorded its end, so that it is known what was left
      def complete? = @complete

      # @return [Integer] the process's number
      def pid = @process.fetch("pid")

      # @return [Integer] its parent's
      def parent = @process.fetch("parent")

      # @return [String] the program it ran, as $0 has it
      def program = @process["program"].to_s

      # @return [String] the Ruby it ran on
      def ruby = @process["ruby"].to_s

      # @return [Boolean] whether mallocs and file-system calls were counted
      def calls? = @process["calls"] == true

      # @return [Boolean] whether it is known which objects stayed
      def retained? = @process["retained"] == true && complete?

      # @return [Array<Feature>] all, in the order they were begun
      def features = @list ||= roots.flat_map(&:all)

      # @return [Figures] of all requires together
      def total = roots.map(&:total).reduce(Figures.none, :+)

      private

      def take(line)
        raise ArgumentError, "a line of it is no object" unless line.is_a?(Hash)
        raise Error, "#{@name} is no recording of requires" unless @process || line["kind"] == "process"

        case line["kind"]
        when "process" then head(line)
        when "begin" then open(line)
        when "name" then feature(line)&.name = text(line["name"])
        when "compiled" then feature(line)&.compiled(text(line["path"]), Figures.read(line["figures"]))
        when "inner" then inner(line)
        when "end" then close(line)
        when "last" then @seconds = time(line["at"])
        when "held" then held(line)
        when "code" then @codes << Code.new(text(line.fetch("path")), line["eval"] == true, count(line["bytes"]), count(line["count"]))
        when "exit" then @complete = true
        end
      end

      def head(line)
        raise Error, "#{@name} is of another version of culet" unless line["version"] == VERSION

        @process = line.merge("pid" => count(line["pid"]), "parent" => count(line["parent"]), "program" => text(line["program"]), "ruby" => text(line["ruby"]))
      end

      def feature(line) = @features[line["id"]]

      # A program may require anything, also what no file can be called.
      def text(name) = name&.to_s&.delete("\0")

      def count(value) = Figures.sound(Integer(value))

      def time(value) = Figures.sound(Float(value))

      def open(line)
        how = line["inherited"] ? "inherited" : line["how"].to_s
        add(Feature.new(id: count(line["id"]), up: @features[line["up"]], how: how, name: text(line["name"]), at: time(line["at"])))
      end

      def add(one)
        @features[one.id] = one if one.id
        one.up ? one.up.children << one : @roots << one
      end

      # Required by C code: the file is known, its cost is its requirer's. Or it is the program itself.
      def inner(line)
        up = @features[line["up"]]
        path = text(line["path"])
        one = Feature.new(id: nil, up: up, how: up.nil? && path == program ? "program" : "C code", name: nil, at: 0.0)
        one.path = path
        one.result = true
        add(one)
      end

      # A require that loaded nothing, because what it names was there, is no node of the tree.
      def close(line)
        one = feature(line) or return
        one.total = Figures.read(line["figures"])
        return repeated(one) if line["result"] == false && one.children.empty?

        path = text(line["path"])
        extension(one, path) if one.path && path && one.how != "load"
        one.path ||= path
        one.result = [true, false, nil].include?(line["result"]) ? line["result"] : text(line["result"])
      end

      # What was taken for its file is one that its C code required.
      def extension(one, path)
        inner("up" => one.id, "path" => one.path)
        one.children.rotate!(-1)
        one.compiled(path, nil)
      end

      # One whose end was not seen took at least what is known of what it required.
      def conclude(one)
        one.children.each { |child| conclude(child) }
        one.total = one.children.map(&:total).reduce(Figures.none, :+) if one.result.nil?
      end

      def repeated(one) = one.up ? one.up.repeat(one) : @roots.delete(one)

      def held(line)
        one = feature(line) or return
        one.retained_objects = count(line["objects"])
        one.retained_bytes = count(line["bytes"])
      end

      # A file that was loaded more than once: the last one's code is what is left.
      def give_code
        files = codes.reject(&:eval).group_by(&:path).transform_values { |list| list.sum(&:bytes) }
        features.reverse_each { |one| one.code_bytes = files.delete(one.path) || 0 if one.path }
      end
    end
  end
end
