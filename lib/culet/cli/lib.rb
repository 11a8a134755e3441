# frozen_string_literal: true

require_relative "command"
require_relative "../allocators"
require_relative "../tools/library_link"
require_relative "../system/ruby_options"

module Culet
  module CLI
    # `culet lib`: the absolute path of the allocator, or of a part of culet that programs load, alone on stdout.
    class Lib < Command
      BANNER = "culet lib [#{RubyOptions::PARTS.join("|")}] [--link PATH]".freeze
      EXAMPLES = ["LD_PRELOAD=$(culet lib) ruby app.rb",
                  "RUBYOPT=-r$(culet lib auto) bundle exec puma    without culet in the bundle",
                  "culet lib --link /usr/local/lib/libculet.so     in a Dockerfile, for ENV LD_PRELOAD"].freeze

      private

      def execute(words, *)
        check(words)
        path = words.empty? ? Allocators.culet_library : RubyOptions.file(words.first)
        path = LibraryLink.new(options[:link]).make(path) if options[:link]
        deliver(options[:json] ? JSON.generate(path: path) : path)
        EXIT_OK
      end

      def define(parser)
        option(parser, "--link PATH", "make PATH a link to libculet.so, and print PATH, a name that does not change " \
                                      "with the version, the Ruby or the processor")
      end

      def check(words)
        raise UsageError, "--link is for libculet.so; leave out the name of the part" if options[:link] && words.any?
        return if words.size <= 1 && (words - RubyOptions::PARTS).empty?

        raise UsageError, "`culet lib` prints the path of libculet.so; `culet lib PART` prints the path of a part " \
                          "to load with RUBYOPT: #{RubyOptions::PARTS.join(", ")}"
      end
    end
  end
end
