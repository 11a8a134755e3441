# frozen_string_literal: true

require_relative "../errors"
require_relative "../system/elf"
require_relative "locator"

module Culet
  module Allocators
    # The library of an allocator that the user names by its path.
    class LibraryFile
      # @return [String] absolute, without links, as the kernel lists it in a process's mappings
      attr_reader :path

      # @return [Elf]
      attr_reader :elf

      # @param name [String] a path
      # @raise [UsageError] when it is no library that can take the place of malloc
      def initialize(name)
        @path = File.realpath(name)
        raise UsageError, "#{name} is not a shared library; name the .so file of an allocator" unless Elf.file?(@path)

        @elf = Elf.new(@path)
        check(name)
      rescue Elf::Invalid => e
        raise UsageError, "#{e.message}; name the .so file of an allocator"
      rescue SystemCallError => e
        raise UsageError, "cannot read #{name}: #{Error.reason(e)}; " \
                          "name the .so file of an allocator"
      end

      private

      def check(name)
        raise UsageError, "#{name} is for another architecture" unless elf.same_kind?(Locator.own)
        raise UsageError, "#{name} is a C library; write glibc" if elf.defines?("gnu_get_libc_version")
        return if elf.defines?("malloc")

        raise UsageError, "#{name} does not define malloc; name a build of the allocator that replaces it"
      end
    end
  end
end
