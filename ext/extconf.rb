# frozen_string_literal: true

# The gem's one extension entry. RubyGems runs this file in its folder, then `make install`; the Makefile leads to
# install.rb. It is no mkmf script, because the gem has five parts and is to install where some or all of them cannot
# be built. Without make, an installation by a RubyGems that takes a missing Makefile for "nothing to build" goes on as
# well; others end with an error, above which stands the sentence that is printed here.

require "fileutils"
require "rbconfig"
require "shellwords"
require_relative "native_build"

# Of an earlier build of this folder; where there is no Makefile, nothing else would be recorded.
beside = File.expand_path("../lib/culet", __dir__)
FileUtils.rm_f([File.join(beside, NativeBuild::RECORD), "Makefile"])

if NativeBuild.make
  # Newer releases of RubyGems name sitearchdir to make, older ones to this file (RbConfig).
  File.write("Makefile", <<~MAKE)
    sitearchdir = #{RbConfig::CONFIG["sitearchdir"].gsub("$", "$$")}

    .PHONY: all clean install
    all clean:

    install:
    	@#{Shellwords.escape(RbConfig.ruby).gsub("$", "$$")} install.rb "$(DESTDIR)$(sitearchdir)/culet"
  MAKE
else
  puts "culet: there is no make on PATH; install make, then install culet again."
  NativeBuild.new(destination: beside, scratch: Dir.pwd).refuse(NativeBuild::NO_MAKE)
end
