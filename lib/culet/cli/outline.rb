# frozen_string_literal: true

require_relative "../cli"

module Culet
  module CLI
    # A verb as its --help describes it, in parts: what the manual and the completion are made of.
    class Outline
      # flags: each way to write it; argument: what it takes, nil: nothing; text: its lines; values: what the argument
      # can be, nil: anything.
      Option = Struct.new(:flags, :argument, :text, :values, keyword_init: true) do
        # @return [Boolean] whether its argument is a file's name
        def file? = argument.to_s.match?(/FILE|PATH/)
      end

      # @return [Array<Outline>] of each verb, and of those of two words
      def self.all
        second = SECOND_WORDS.map do |words, (file, constant)|
          require_relative file
          [words.join(" "), CLI.const_get(constant)]
        end
        first = VERBS.keys.map { |verb| [verb, CLI.command(verb)] }
        [*first, *second].map { |name, command| new(name, command.new(out: nil, err: nil)) }
      end

      # @return [String] its words: "report", "cow experiment"
      attr_reader :name

      def initialize(name, command)
        @name = name
        @command = command
      end

      # @return [String] one line on what it does
      def summary = @command.summary

      # @return [String] how it is written
      def synopsis = @command.banner

      # @return [Array<String>]
      def examples = @command.examples

      # @return [Array<String>] words that it takes beside options
      def words = @command.known_words

      # @return [Array<Option>]
      def options = parts.grep(Option)

      # @return [Array<Option, String>] options, and the lines of text between them
      def parts = @parts ||= @command.described.top.list.map { |part| part.is_a?(String) ? part : option(part) }

      private

      def option(switch)
        values = switch.pattern.keys if switch.pattern.is_a?(Hash)
        flags = [*switch.short, *switch.long].flat_map do |flag|
          flag.include?("[no-]") ? [flag.sub("[no-]", ""), flag.sub("[no-]", "no-")] : [flag]
        end
        Option.new(flags: flags, argument: switch.arg&.strip, text: switch.desc, values: values)
      end
    end
  end
end
