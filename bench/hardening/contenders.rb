# frozen_string_literal: true

module HardeningBench
  # The contenders of bench/allocator/run, and hardened allocators that `culet run` does not know.
  module Contenders
    # Those that are not there, or have no such setting, are left out.
    USUAL = %w[glibc jemalloc tcmalloc mimalloc mimalloc-secure scudo culet
               culet:harden=1 culet:harden=2 culet:harden=3].freeze
    # Name => file names. mimalloc-secure: built with -DMI_SECURE=ON; scudo: Debian's libclang-rt-*-dev.
    HARDENED = { "mimalloc-secure" => [/\Alibmimalloc-secure\.so(?:\.([\d.]+))?\z/],
                 "scudo" => [/\Alibclang_rt\.scudo_standalone-\w+\.so\z/] }.freeze
    # The compiler's own libraries; the loader does not search there.
    COMPILER_DIRECTORIES = "/usr/lib/llvm-*/lib/clang/*/lib/linux"

    module_function

    # @see Bench::Contender.choose
    def choose(named) = Bench::Contender.choose(named, USUAL, method(:find))

    # @param text [String] as of Bench::Contender, or a name of HARDENED
    # @return [Bench::Contender]
    def find(text)
      patterns = HARDENED[text] or return Bench::Contender.new(text)

      path = locator.find(patterns)
      return Bench::Contender.new("#{text}=#{path}") if path

      raise Culet::Error, "#{text} is not installed; give its library as #{text}=PATH, or put the library's folder " \
                          "into LD_LIBRARY_PATH"
    end

    def locator
      own = ENV.fetch("LD_LIBRARY_PATH", "").split(":")
      path = [*own, *Dir[COMPILER_DIRECTORIES].reverse].join(":")
      Culet::Allocators::Locator.new(environment: ENV.to_h.merge("LD_LIBRARY_PATH" => path))
    end
  end
end
