# frozen_string_literal: true

require_relative "../../../lib/culet/errors"
require_relative "../../../lib/culet/system/foreign_file"
require_relative "../../../lib/culet/system/foreign_json"
require_relative "feature"
require_relative "saved"

module Culet
  module Boot
    # The recording of one process: the tree of requires, and the compiled code.
    class Log
      # The compiled code of one file, or of evaluated code with one name.
      Code = Struct.new(:path, :eval, :bytes, :count)

      VERSION = 1
      # A large application has 10 MB.
      MOST_BYTES = 256 << 20
      private_constant :VERSION, :MOST_BYTES

      # @param path [String] a file from the recorder
      # @raise [Culet::Error] when the file is not a recording
      def self.read(path) = new(ForeignFile.read(path, most_bytes: MOST_BYTES), name: path)

      # @param text [String] lines of JSON, zeros may follow
      # @param name [String] for errors
      # @raise [Culet::Error]
      def initialize(text, name: "the recording")
        @name = name
        @features = {}
        @roots = []
        @codes = []
        @complete = false
        # A killed process leaves an incomplete last line.
        text.b.delete("\0").each_line do |line|
          take(ForeignJson.parse(line)) if line.end_with?("\n")
        end
        raise Error, "#{name} is not a recording of requires" unless @process

        roots.each { |root| conclude(root) }
        give_code
      rescue JSON::ParserError, TypeError, ArgumentError, KeyError => e
        raise Error, "#{name} is damaged: #{e.message.lines.first&.chomp}"
      end

      # @return [Array<Feature>] features without a requirer
      attr_reader :roots
      # @return [Array<Code>] compiled code at the end, by file
      attr_reader :codes
      # @return [Float, nil] duration of the recording; nil without its end
      attr_reader :seconds

      # @return [Boolean] whether the recording includes the end of the process
      def complete? = @complete

      # @return [Integer] process number
      def pid = @process.fetch("pid")

      # @return [Integer] process number of the parent
      def parent = @process.fetch("parent")

      # @return [String] the program, from $0
      def program = @process["program"].to_s

      # @return [String] the Ruby version
      def ruby = @process["ruby"].to_s

      # @return [Boolean] whether mallocs and file-system calls were counted
      def calls? = @process["calls"] == true

      # @return [Boolean] whether retained objects were counted
      def retained? = @process["retained"] == true && complete?

      # @return [Array<Feature>] all features, in order of their start
      def features = @list ||= roots.flat_map(&:all)

      # @return [Cost] sum of all requires
      def total = roots.map(&:total).reduce(Cost.none, :+)

      private

      def take(line)
        raise ArgumentError, "a line of it is no object" unless line.is_a?(Hash)
        raise Error, "#{@name} is not a recording of requires" unless @process || line["kind"] == "process"

        case line["kind"]
        when "process" then head(line)
        when "begin" then open(line)
        when "name" then feature(line)&.name = text(line["name"])
        when "compiled" then feature(line)&.compiled(text(line["path"]), Cost.read(line["figures"]))
        when "inner" then inner(line)
        when "end" then close(line)
        when "last" then @seconds = time(line["at"])
        when "held" then held(line)
        when "code"
          @codes << Code.new(text(line.fetch("path")), line["eval"] == true, count(line["bytes"]), count(line["count"]))
        when "exit" then @complete = true
        end
      end

      def head(line)
        raise Error, "#{@name} is of another version of culet" unless line["version"] == VERSION

        @process = line.merge("pid" => count(line["pid"]), "parent" => count(line["parent"]),
                              "program" => text(line["program"]), "ruby" => text(line["ruby"]))
      end

      def feature(line) = @features[line["id"]]

      # A program may require strings that are no file names.
      def text(name) = name&.to_s&.delete("\0")

      def count(value) = Cost.sound(Integer(value))

      def time(value) = Cost.sound(Float(value))

      def open(line)
        how = line["inherited"] ? "inherited" : line["how"].to_s
        add(Feature.new(id: count(line["id"]), up: @features[line["up"]], how: how,
                        name: text(line["name"]), at: time(line["at"])))
      end

      def add(one)
        raise ArgumentError, "its requires are nested too deeply" if one.depth > Shapes::DEEPEST

        @features[one.id] = one if one.id
        one.up ? one.up.children << one : @roots << one
      end

      # A file required by C code, whose cost counts for its requirer, or the program itself.
      def inner(line)
        up = @features[line["up"]]
        path = text(line["path"])
        one = Feature.new(id: nil, up: up, how: up.nil? && path == program ? "program" : "C code", name: nil, at: 0.0)
        one.path = path
        one.result = true
        add(one)
      end

      # A require of a loaded feature is no node of the tree.
      def close(line)
        one = feature(line) or return
        one.total = Cost.read(line["figures"])
        return repeated(one) if line["result"] == false && one.children.empty?

        path = text(line["path"])
        extension(one, path) if one.path && path && one.how != "load"
        one.path ||= path
        one.result = [true, false, nil].include?(line["result"]) ? line["result"] : text(line["result"])
      end

      # The file recorded for an extension may be a script that its C code required.
      def extension(one, path)
        inner("up" => one.id, "path" => one.path)
        one.children.rotate!(-1)
        one.compiled(path, nil)
      end

      # A require without an end costs at least the sum of its children.
      def conclude(one)
        one.children.each { |child| conclude(child) }
        one.total = one.children.map(&:total).reduce(Cost.none, :+) if one.result.nil?
      end

      def repeated(one) = one.up ? one.up.repeat(one) : @roots.delete(one)

      def held(line)
        one = feature(line) or return
        one.retained_objects = count(line["objects"])
        one.retained_bytes = count(line["bytes"])
      end

      # Of a file loaded more than once, the code of the last load remains.
      def give_code
        files = codes.reject(&:eval).group_by(&:path).transform_values { |list| list.sum(&:bytes) }
        features.reverse_each { |one| one.code_bytes = files.delete(one.path) || 0 if one.path }
      end
    end
  end
end
