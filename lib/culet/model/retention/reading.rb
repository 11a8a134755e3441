# frozen_string_literal: true

require "tempfile"
require "zlib"
require_relative "../../../culet"
require_relative "../../errors"
require_relative "../../system/agent/conversation"
require_relative "../../system/foreign_json"
require_relative "../../system/input_file"

module Culet
  # Retention: the holders of the memory of a Ruby process.
  module Retention
    # Asks for an analysis of all objects of a process, or reads a dump of ObjectSpace.dump_all. The analysis is made in
    # C (ext/culet/retain/DESIGN.md).
    module Reading
      # Default limits: CPU time in seconds, and memory of the analysis in bytes.
      LIMIT_SECONDS = 30.0
      LIMIT_BYTES = 4 << 30
      # Longest wait for the main thread of the process, in seconds.
      WAIT_SECONDS = 10.0
      # CPU time for a heap snapshot, in seconds.
      SNAPSHOT_SECONDS = 300.0
      # CPU time for a dump, in seconds: reading its lines takes most of it.
      DUMP_SECONDS = 600.0
      # A dump's packed file begins with it. It may unpack to so many times its size, and so many bytes more.
      GZIP = "\x1f\x8b".b.freeze
      MOST_RATIO = 100
      FREE_BYTES = 1 << 20
      # Largest answers, in bytes.
      MOST_BYTES = 64 << 20
      MOST_SNAPSHOT_BYTES = 16 << 30
      # Longest name of a class, in bytes; CULET_CLASS_BYTES of ext/culet/retain/options.h.
      MOST_NAME = 159
      # Deepest nesting of an answer: a path in a list in a holder in a list.
      NESTING = 12
      private_constant :GZIP, :MOST_RATIO, :FREE_BYTES, :MOST_BYTES, :MOST_SNAPSHOT_BYTES, :MOST_NAME,
                       :NESTING

      module_function

      # @param pid [Integer, String] a process number
      # @param content [Boolean] whether contents and keys of strings may be shown
      # @param duplicates [Boolean] whether equal strings are searched for
      # @param class_name [String, nil] whose instances are looked at
      # @param address [Integer, nil] of an object whose paths are looked for
      # @param samples [Boolean] whether to find what keeps the samples of its memory profile; of the
      #   other options only `content` counts then
      # @param limit_seconds [Float] of CPU time
      # @param limit_bytes [Integer] memory of the analysis
      # @param wait_seconds [Float] longest wait for the main thread of the process
      # @param again [Boolean] whether to ask once more if the copy is late
      # @return [Object] the analysis, to be checked by Analysis.new
      # @raise [Culet::Error] when the process has no agent, or cannot be analysed
      def of_process(pid, limit_seconds: LIMIT_SECONDS, wait_seconds: WAIT_SECONDS, again: true, **options)
        conversation = Agent::Conversation.new(pid, verb: "retain", most_bytes: MOST_BYTES)
        parse(conversation.ask_copy(request(**options), again: again, limit_seconds: limit_seconds,
                                                        wait_seconds: wait_seconds))
      rescue JSON::ParserError
        raise Error, conversation.strange
      end

      # Writes all objects of a process in the format of V8's heap snapshots, which Chrome's DevTools open.
      #
      # @param pid [Integer, String] a process number
      # @param file [File] receives the snapshot
      # @param content [Boolean] whether contents and keys of strings are written
      # @raise [Culet::Error] as of_process
      def heapsnapshot_of_process(pid, file, content: false)
        conversation = Agent::Conversation.new(pid, verb: "retain", most_bytes: MOST_SNAPSHOT_BYTES)
        question = request(content: content, heapsnapshot: true)
        conversation.ask_copy(question, limit_seconds: SNAPSHOT_SECONDS, wait_seconds: WAIT_SECONDS, into: file)
        file.flush
      end

      # @param path [String] a file of ObjectSpace.dump_all, plain or gzipped
      # @param content [Boolean] as of of_process, as the others
      # @return [Object] as of of_process; its "pid" is 0
      # @raise [Culet::Error] when the file is no dump, or is cut or damaged
      def of_dump(path, limit_seconds: DUMP_SECONDS, **options)
        Tempfile.create("culet-retain") do |answer|
          File.unlink(answer.path)
          read_dump(path, answer, limit_seconds: limit_seconds, **options)
          raise Error, "the analysis is too large" if answer.size > MOST_BYTES

          answer.rewind
          parse(answer.read)
        end
      end

      # @param path [String] as of of_dump
      # @param file [File] receives the snapshot
      # @raise [Culet::Error] as of_dump
      def heapsnapshot_of_dump(path, file, content: false)
        file.flush
        read_dump(path, file, content: content, heapsnapshot: true, limit_seconds: DUMP_SECONDS)
      end

      def parse(text) = ForeignJson.parse(text, max_nesting: NESTING)

      # @return [String] the request, without its limits of time
      def request(content: false, duplicates: false, heapsnapshot: false, class_name: nil, address: nil,
                  samples: false, limit_bytes: LIMIT_BYTES)
        return "retain samples content=#{content ? 1 : 0} limit_bytes=#{Integer(limit_bytes)}" if samples

        name = class_name.to_s
        raise Error, "no class has the name #{name.inspect}" if name.match?(/[[:space:]]/) || name.bytesize > MOST_NAME

        bits = { "content" => content, "duplicates" => duplicates, "heapsnapshot" => heapsnapshot }
        ["retain", *bits.map { |bit, value| "#{bit}=#{value ? 1 : 0}" }, "limit_bytes=#{Integer(limit_bytes)}",
         format("path=0x%x", address || 0), "class=#{name.empty? ? "-" : name}"].join(" ")
      end

      def read_dump(path, answer, limit_seconds:, content: false, duplicates: false, heapsnapshot: false,
                    class_name: nil, address: nil, limit_bytes: LIMIT_BYTES)
        raise Error, Native.missing_reason("culet.so") unless Culet.native?

        InputFile.open(path, what: "a dump of ObjectSpace.dump_all") do |file|
          unpacked(file) do |dump|
            Retention.analyse_dump(dump.fileno, answer.fileno, [content, duplicates, heapsnapshot, class_name.to_s,
                                                                address || 0, limit_seconds, limit_bytes])
          end
        end
      rescue Error => e
        raise Error, e.message.include?(path) ? e.message : "#{path}: #{e.message}"
      end

      # @yieldparam file [File] plain, at its start
      def unpacked(file)
        packed = file.read(GZIP.bytesize) == GZIP
        file.rewind
        file.sysseek(0)
        return yield(file) unless packed

        Tempfile.create("culet-retain") do |plain|
          File.unlink(plain.path)
          unpack(file, plain)
          plain.flush
          plain.sysseek(0)
          yield plain
        end
      rescue Zlib::Error => e
        raise Error, "it cannot be unpacked: #{e.message}"
      end

      def unpack(file, plain)
        most = (MOST_RATIO * file.size) + FREE_BYTES
        return if IO.copy_stream(Zlib::GzipReader.new(file), plain, most) < most

        raise Error, "it unpacks to more than a dump of its size has"
      end

      private_class_method :parse, :request, :read_dump, :unpacked, :unpack
    end
  end
end
