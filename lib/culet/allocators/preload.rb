# frozen_string_literal: true

require_relative "../errors"
require_relative "../system/elf"
require_relative "locator"

module Culet
  module Allocators
    # The words of LD_PRELOAD. The loader takes spaces and colons as separators (ld.so(8)).
    class Preload
      class << self
        # @param file [String] path of an executable, or of a script
        # @return [Array<String>] one sentence for each reason why nothing can be preloaded into it
        def obstacles(file)
          return [] unless Elf.file?(file)

          elf = Elf.new(file)
          [elf.same_kind?(Locator.own) ? static(elf) : foreign(elf), privileged(file)].compact
        end

        private

        def foreign(elf)
          "#{elf.path} is a #{elf.bits}-bit program for another architecture than this Ruby; the allocator cannot be " \
            "preloaded, so the program uses its own."
        end

        def static(elf)
          "#{elf.path} is statically linked; nothing can be preloaded, so it uses its own allocator." if elf.static?
        end

        # ld.so(8), "secure-execution mode".
        def privileged(file)
          stat = File.stat(file)
          return unless (stat.setuid? && stat.uid != ::Process.uid) || (stat.setgid? && stat.gid != ::Process.gid)

          "#{file} is set-user-ID or set-group-ID; the loader ignores the preload, so it uses " \
            "its own allocator."
        end
      end

      # @param text [String, nil] LD_PRELOAD as it is
      def initialize(text)
        # A path may be invalid UTF-8, which `split` refuses.
        words = text.to_s.b.split(/[\s:]+/).reject(&:empty?)
        @libraries = words.map { |path| path.force_encoding(Encoding::UTF_8) }
      end

      # @return [Array<String>] the libraries, in the loader's order
      attr_reader :libraries

      # @param library [String, nil] an allocator that comes first; nil for none
      # @return [String, nil] the new LD_PRELOAD: no other allocator of the catalogue, the user's own libraries kept;
      #   nil when nothing is left
      # @raise [Culet::Error] when the library's path cannot be written in LD_PRELOAD
      def with(library)
        if library&.match?(/[\s:]/)
          raise Error, "#{library} cannot be preloaded, because the loader takes spaces and colons in LD_PRELOAD as " \
                       "separators; put it where the path has none"
        end

        kept = libraries.reject { |path| path == library || Allocators.of_library(path) }
        words = [*library, *kept]
        words.empty? ? nil : words.join(":")
      end
    end
  end
end
