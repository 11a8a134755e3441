# frozen_string_literal: true

# The gem's extension entry: RubyGems runs this file in its folder, then `make install`, whose Makefile runs install.rb.
# It is no mkmf script, because the gem has five parts and must install where some of them cannot be built. Without make
# some versions of RubyGems install the gem without the parts, others fail after the message below.

require "fileutils"
require "rbconfig"
require "shellwords"
require_relative "native_build"

# Left by an earlier build in this folder.
beside = File.expand_path("../lib/culet", __dir__)
FileUtils.rm_f([File.join(beside, NativeBuild::RECORD), "Makefile"])

if NativeBuild.make
  # Newer RubyGems pass sitearchdir to make, older ones set it in RbConfig.
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
