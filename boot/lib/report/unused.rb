# frozen_string_literal: true

require_relative "../../../lib/culet/errors"
require_relative "../../../lib/culet/system/foreign_file"
require_relative "../../../lib/culet/system/foreign_json"
require_relative "../../../lib/culet/system/shape"
require_relative "../../../lib/culet/version"
require_relative "../../../lib/culet/model/origin"
require_relative "saved"
require_relative "../../../lib/culet/system/agent/conversation"
require_relative "../../../lib/culet/system/ruby_options"

module Culet
  module Boot
    # Compiled code that never ran, in one process or in all of several: `culet requires --unused --json`.
    class Unused
      # As the verb was called when the format was made.
      KIND = "culet require --unused"
      ANSWER = "culet unused"
      # Culet's own files are not part of the program.
      OWN = %w[../../../lib ..].map { |folder| "#{File.expand_path(folder, __dir__)}/" }.freeze
      COUNT = Shape::COUNT
      SINCE = Shape.one_of("start", "asked", "now")
      PIECE = Shape.tuple(Shape::INTEGER, Shape::TEXT, COUNT)
      FILE = { "path" => Shape::TEXT, "bytes" => COUNT, "count" => COUNT }.freeze
      # The answer of a process.
      ANSWER_SHAPE = {
        "kind" => ANSWER, "version" => 1, "pid" => COUNT, "parent_pid" => COUNT, "program" => Shape::TEXT,
        "ruby" => Shape::TEXT, "since" => SINCE,
        "files" => [Shape.either({ **FILE, "told" => false },
                                 { **FILE, "told" => true, "untold_bytes" => COUNT, "unused" => [PIECE] })],
        "evaluated" => Shape.map(Shape::TEXT, Shape.tuple(COUNT, COUNT)), "seconds" => Shape::SECONDS,
        "heard" => Shape::BOOLEAN
      }.freeze
      FIGURES = { "iseq_bytes" => COUNT, "unused_bytes" => COUNT, "untold_bytes" => COUNT,
                  "unseen_bytes" => COUNT }.freeze
      # The shape of `culet requires --unused --json`.
      SHAPE = {
        "kind" => KIND, "ruby" => Shape::TEXT, "program" => Shape::TEXT, "since" => Shape.either(SINCE, "mixed"),
        "processes" => [{ "pid" => COUNT, "parent_pid" => COUNT, "iseq_bytes" => COUNT,
                          "census_seconds" => Shape::SECONDS }],
        **FIGURES, "evaluated_bytes" => COUNT,
        "gems" => [{ "gem" => Shape::TEXT, "files" => COUNT, **FIGURES }],
        "files" => [{ "path" => Shape::TEXT, "gem" => Shape::TEXT, "pieces" => COUNT, **FIGURES,
                      "unused" => [{ "line" => Shape::INTEGER, "label" => Shape::TEXT, "iseq_bytes" => COUNT }] }],
        "problems" => [Shape::TEXT]
      }.freeze
      private_constant :ANSWER, :OWN, :COUNT, :SINCE, :PIECE, :FILE, :ANSWER_SHAPE, :FIGURES, :SHAPE

      # @param document [Hash] of Unused
      # @return [String] the predicate of the unused code
      def self.verdict(document) = document["since"] == "start" ? "never ran" : "did not run while coverage was on"

      # @param document [Hash] of Unused, or of one gem or file in it
      # @return [Integer, nil] percentage of unused code; nil without code
      def self.percent(document)
        return unless document["iseq_bytes"].positive?

        (100 * document["unused_bytes"].fdiv(document["iseq_bytes"])).round
      end

      # @param document [Hash] of Unused
      # @return [String] the process, or the number of processes, with their name if all have the same
      def self.subject(document)
        list = document["processes"]
        return "#{document["program"]} (process #{list.first["pid"]})" if list.size == 1

        names = list.filter_map { |one| one["program"] }.uniq
        names.size == 1 ? "#{list.size} processes of #{names.first}" : "#{list.size} processes"
      end

      # @param path [String] a file with the answer of a process
      # @return [Hash]
      # @raise [Culet::Error] when the file is no answer
      def self.read(path) = parse(ForeignFile.read(path), name: path)

      # @param text [String] the answer of a process
      # @param name [String] its name in messages
      # @return [Hash]
      # @raise [Culet::Error] when the text is no answer
      def self.parse(text, name:)
        Shape.check(ForeignJson.parse(text), ANSWER_SHAPE, name: name)
      rescue JSON::ParserError
        raise Error, "#{name} is damaged: it is not JSON"
      end

      # @param path [String] a document of `culet requires --unused --json`
      # @return [Hash] of Unused
      # @raise [Culet::Error] for another document
      def self.load(path) = Saved.read(path, KIND, SHAPE, writer: "culet requires --unused --json")

      # @param answers [Array<Hash>] of the processes, at least one
      def initialize(answers)
        @answers = answers
      end

      # @return [Hash{String => Object}] bytes of the process with most code; code is unused if it ran in no process
      def to_h
        processes = @answers.map do |one|
          { "pid" => one["pid"], "parent_pid" => one["parent_pid"], "program" => one["program"],
            "iseq_bytes" => total(one), "census_seconds" => one["seconds"] }
        end
        { "kind" => KIND, "culet" => VERSION, "ruby" => widest["ruby"], "program" => widest["program"],
          "since" => since,
          "processes" => processes, "iseq_bytes" => total(widest), **totals,
          "gems" => gems, "files" => files, "problems" => problems }
      end

      private

      def total(answer) = answer["files"].sum { |one| one["bytes"] } + evaluated(answer)

      def evaluated(answer) = answer["evaluated"].values.sum(&:first)

      def widest = @widest ||= @answers.max_by { |one| total(one) }

      def totals
        { "unused_bytes" => sum(files, "unused_bytes"), "untold_bytes" => sum(files, "untold_bytes"),
          "unseen_bytes" => sum(files, "unseen_bytes"), "evaluated_bytes" => evaluated(widest) }
      end

      def sum(list, key) = list.sum { |one| one[key] }

      def files
        @files ||= widest["files"].reject { |one| one["path"].start_with?(*OWN) }
                                  .map { |one| file(one) }
                                  .sort_by { |one| [-one["unused_bytes"], one["path"]] }
      end

      # unseen: files loaded before coverage started.
      def file(one)
        unused = one["told"] ? everywhere(one["path"], one["unused"]) : []
        { "path" => one["path"], "gem" => Origin.of(one["path"]), "iseq_bytes" => one["bytes"],
          "pieces" => one["count"], "unused_bytes" => unused.sum(&:last), "untold_bytes" => one["untold_bytes"] || 0,
          "unseen_bytes" => one["told"] ? 0 : one["bytes"],
          "unused" => unused.map { |line, label, bytes| { "line" => line, "label" => label, "iseq_bytes" => bytes } } }
      end

      # Pieces with the same name on the same line are counted.
      def everywhere(path, unused)
        others.fetch(path, []).reduce(unused) do |left, other|
          counts = other.tally
          left.select { |line, label,| (counts[[line, label]] = counts.fetch([line, label], 0) - 1) >= 0 }
        end
      end

      # @return [Hash{String => Array<Array>}] path => unused pieces of each other process with coverage of it
      def others
        @others ||= begin
          told = (@answers - [widest]).flat_map { |answer| answer["files"].select { |one| one["told"] } }
          told.group_by { |one| one["path"] }
              .transform_values { |list| list.map { |one| one["unused"].map { |piece| piece.first(2) } } }
        end
      end

      def gems
        files.group_by { |one| one["gem"] }.map do |name, list|
          { "gem" => name, "files" => list.size, **FIGURES.to_h { |key, _| [key, sum(list, key)] } }
        end.sort_by { |one| [-one["unused_bytes"], one["gem"]] }
      end

      # @return [String] "start", "asked" or "now" if equal for all processes, else "mixed"
      def since = @answers.map { |one| one["since"] }.uniq.then { |all| all.size == 1 ? all.first : "mixed" }

      def problems
        heard = @answers.all? { |one| one["heard"] }
        [("this Ruby has no line coverage, so unused code is unknown" unless heard), beginning].compact
      end

      def beginning
        pids = @answers.filter_map { |one| one["pid"] if one["since"] == "now" }
        return if pids.empty?

        "process #{pids.join(", ")}: coverage starts now (CULET_UNUSED_FROM=asked); " \
          "run the command again after some time of normal work"
      end
    end

    # Requests unused code from the agent of a process with coverage (culet/unused).
    class UnusedInquiry
      # Time limits of the answer, and of the wait for its start.
      LIMIT_SECONDS = 120.0
      PATIENCE_SECONDS = 60.0
      private_constant :LIMIT_SECONDS, :PATIENCE_SECONDS

      # @param word [String] a process number
      # @raise [Culet::Error] without such a process
      def initialize(word, patience: PATIENCE_SECONDS)
        absence = "process #{word} does not record which code runs; " \
                  "start it with `culet requires --unused -- COMMAND`, or with " \
                  "#{RubyOptions.advice("unused")} in its environment"
        @conversation = Agent::Conversation.new(word, verb: "requires --unused", absence: -> { absence })
        @patience = patience
      end

      # @return [Hash] the answer, for Unused
      # @raise [Culet::Error] without an answer; the message gives reason and remedy
      def call
        text = @conversation.ask("unused", limit_seconds: LIMIT_SECONDS, wait_seconds: @patience)
        Unused.parse(text, name: "the answer of process #{@conversation.pid}")
      end
    end
  end
end
