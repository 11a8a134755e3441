# frozen_string_literal: true

require "fileutils"
require "mkmf"

# What the extconf.rb of both extensions, ext/culet and boot/ext, have in common.
module Extension
  # From the folder of either extension.
  ROOT = "$(srcdir)/../.."
  CHECKOUT = File.expand_path("..", __dir__)

  module_function

  # The options of the compiler, and what the files that both compile ask Ruby and the C library for.
  def check
    append_cflags(["-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wshadow"])
    # Warnings are errors in our own builds, not under a user's newer compiler.
    append_cflags("-Werror") if ENV["CULET_STRICT"]
    $CFLAGS << " -g0" unless enable_config("debugging", true)

    # In libdl up to glibc 2.33, in libc since.
    have_library("dl", "dladdr") unless have_func("dladdr", "dlfcn.h", "-D_GNU_SOURCE")
    have_library("pthread", "pthread_create") unless have_func("pthread_create", "pthread.h")
    have_const("RUBY_ELTS_SHARED", "ruby.h")
    # As ruby.h, whatever is included first. Not for the checks, of which one declares what a header does.
    $CPPFLAGS << " -D_GNU_SOURCE"
  end

  # Writes the Makefile. Object files are in folders of the same names as the sources. Symbols are hidden, so each
  # extension has its own copy of a file that both compile.
  #
  # @param name [String] of the extension
  # @param folder [String] of the extension
  # @param shared [Hash{String => Array<String>}] folder of the repository, from which includes start => patterns of
  #   sources in it
  def create(name, folder, shared)
    sources = shared.flat_map { |from, patterns| Dir[*patterns, base: File.join(CHECKOUT, from)] }
    sources = (sources + Dir["**/*.c", base: folder]).sort
    # Headers of the parts in C are included from the root.
    shared.keys.union(["."]).each do |from|
      $INCFLAGS << " -I#{ROOT}/#{from}"
      $VPATH << "#{ROOT}/#{from}"
    end
    sources.each { |source| FileUtils.mkdir_p(File.dirname(source)) }
    $objs = sources.map { |source| source.sub(/c\z/, "o") }

    # A platform gem serves Rubies with and without a libruby.so of their own: its symbols are found in what is loaded.
    $LIBRUBYARG = "" if enable_config("platform-gem", false)
    create_makefile("culet/#{name}")
  end
end
