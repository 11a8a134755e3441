# frozen_string_literal: true

require_relative "../../../lib/culet/system/clock"

module Culet
  module Unused
    # Which compiled code of this process has run. A piece is a method, a block, or the body of a file or class.
    #
    # Bodies have run, because loading runs them. For other pieces, each line fires once for each piece on it; if
    # several pieces share a line, the outer ones ran first, because only they can call the inner ones.
    class RunCode
      BODY = /\A(?:<|singleton class\z)/
      LEVELS = /\Ablock(?: \((\d+) levels\))? in /
      private_constant :BODY, :LEVELS

      # One piece of code. lines: its own lines; nil for a file without coverage.
      Piece = Struct.new(:path, :label, :line, :bytes, :lines) do
        # @return [Integer] number of enclosing pieces
        def depth
          level = label[LEVELS, 1] || (label.start_with?("block in ") ? 1 : 0)
          level.to_i + label.scan(/(?:rescue|ensure) in /).size
        end

        def body? = BODY.match?(label)
      end
      private_constant :Piece

      # @param pid [Integer] the process's number
      # @param since [String] when recording started: "start", "asked", or "now" (not yet)
      def initialize(pid: Process.pid, parent_pid: Process.ppid, since: "start")
        @pid = pid
        @parent_pid = parent_pid
        @since = since
      end

      # @return [Hash{String => Object}] for JSON
      def to_h
        @fired = Unused.fired
        covered = Coverage.peek_result
        started = Clock.now
        files, evaluated = read(covered)
        { "kind" => "culet unused", "version" => 1,
          "pid" => @pid, "parent_pid" => @parent_pid, "program" => $PROGRAM_NAME, "ruby" => RUBY_DESCRIPTION,
          "since" => @since, "files" => files.map { |path, pieces| file(path, pieces) }, "evaluated" => evaluated,
          "seconds" => (Clock.now - started).round(4),
          "heard" => @fired.any? || covered.all? { |_, lines| lines[:oneshot_lines].empty? } }
      end

      private

      # @return [Array(Hash, Hash)] pieces by file; bytes and count of evaluated code by its file name
      def read(covered)
        files = Hash.new { |hash, path| hash[path] = [] }
        evaluated = Hash.new { |hash, path| hash[path] = [0, 0] }
        Unused.pieces.each_slice(3) do |code, bytes, eval|
          path = code.path
          next files[path] << piece(code, path, bytes, covered.key?(path)) unless eval

          evaluated[path][0] += bytes
          evaluated[path][1] += 1
        end
        [files, evaluated]
      end

      def piece(code, path, bytes, covered)
        lines = code.trace_points.filter_map { |line, event| line if event == :line }.uniq if covered
        Piece.new(path, code.label, code.first_lineno, bytes, lines)
      end

      # Pieces that never ran as [line, label, bytes]; pieces without lines of their own are counted apart.
      def file(path, pieces)
        bytes = pieces.sum(&:bytes)
        return { "path" => path, "bytes" => bytes, "count" => pieces.size, "told" => false } if pieces.first.lines.nil?

        told, untold = pieces.partition { |one| one.body? || one.lines.any? }
        idle = unused(told, @fired.fetch(path, {}).dup)
        { "path" => path, "bytes" => bytes, "count" => pieces.size, "told" => true,
          "untold_bytes" => untold.sum(&:bytes),
          "unused" => idle.map { |one| [one.line, one.label, one.bytes] } }
      end

      def unused(pieces, fired)
        pieces.reject(&:body?).sort_by { |one| [one.depth, one.line] }.reject { |one| ran?(one, fired) }
      end

      def ran?(one, fired)
        mine = one.lines.select { |line| fired.fetch(line, 0).positive? }
        mine.each { |line| fired[line] -= 1 }
        mine.any?
      end
    end
  end
end
