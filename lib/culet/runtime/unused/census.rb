# frozen_string_literal: true

module Culet
  module Unused
    # All compiled code of this process: which of it has run. A piece is a method, a block, or a body of a file or class.
    #
    # Bodies have run, since that is what loading is. Of other pieces it is known how often each line fired: once for each
    # piece that has the line. Where several have it, the outer ones ran first, because only they can start the inner ones.
    class Census
      BODY = /\A(?:<|singleton class\z)/
      LEVELS = /\Ablock(?: \((\d+) levels\))? in /
      private_constant :BODY, :LEVELS

      # One piece of code. lines: those of its own, nil where nothing is known of its file.
      Piece = Struct.new(:path, :label, :line, :bytes, :lines) do
        # @return [Integer] how deep it lies in other pieces
        def depth = (label[LEVELS, 1] || (label.start_with?("block in ") ? 1 : 0)).to_i + label.scan(/(?:rescue|ensure) in /).size

        def body? = BODY.match?(label)
      end
      private_constant :Piece

      # @param pid [Integer] the process's number
      # @param parent_pid [Integer]
      # @param since [String] from when on it was followed what runs: "start", "asked", or "now", which is not at all
      def initialize(pid: Process.pid, parent_pid: Process.ppid, since: "start")
        @pid = pid
        @parent_pid = parent_pid
        @since = since
      end

      # @return [Hash{String => Object}] as a file of answers has it
      def to_h
        @fired = Unused.fired
        covered = Coverage.peek_result
        started = now
        files, evaluated = read(covered)
        { "kind" => "culet unused", "version" => 1, "pid" => @pid, "parent_pid" => @parent_pid, "program" => $PROGRAM_NAME, "ruby" => RUBY_DESCRIPTION,
          "since" => @since, "files" => files.map { |path, pieces| file(path, pieces) }, "evaluated" => evaluated, "seconds" => (now - started).round(4),
          "heard" => @fired.any? || covered.all? { |_, lines| lines[:oneshot_lines].empty? } }
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # @return [Array(Hash, Hash)] pieces by file; bytes and count of what was evaluated, by the name it was given
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

      # Pieces that never ran as [line, label, bytes]; those of which it cannot be told are counted.
      def file(path, pieces)
        bytes = pieces.sum(&:bytes)
        return { "path" => path, "bytes" => bytes, "count" => pieces.size, "told" => false } if pieces.first.lines.nil?

        told, untold = pieces.partition { |one| one.body? || one.lines.any? }
        idle = unused(told, @fired.fetch(path, {}).dup)
        { "path" => path, "bytes" => bytes, "count" => pieces.size, "told" => true, "untold_bytes" => untold.sum(&:bytes),
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
