# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "../tools/allocators"
require_relative "../system/ruby_options"

module Culet
  module CLI
    # `culet lib`: the absolute path of the allocator, or of a part of culet that programs load, alone on stdout.
    class Lib < Command
      # @return [String] the usage of the verb
      def banner = "culet lib [#{RubyOptions::PARTS.join("|")}]"

      # @return [Array<String>] examples for --help
      def examples
        ["LD_PRELOAD=$(culet lib) ruby app.rb",
         "RUBYOPT=-r$(culet lib auto) bundle exec puma    without culet in the bundle"]
      end

      # @return [Integer] exit status
      def execute(words, command)
        check(words, command)
        path = words.empty? ? Allocators.culet_library : RubyOptions.file(words.first)
        deliver(options[:json] ? JSON.generate(path: path) : path)
        EXIT_OK
      end

      private

      def check(words, command)
        return if command.nil? && words.size <= 1 && (words - RubyOptions::PARTS).empty?

        raise UsageError, "`culet lib` prints the path of libculet.so; `culet lib PART` prints the path of a part " \
                          "to load with RUBYOPT: #{RubyOptions::PARTS.join(", ")}"
      end
    end
  end
end
