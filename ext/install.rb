# frozen_string_literal: true

# Builds the compiled files of an installed gem; run by the Makefile that extconf.rb writes.
#
#   ruby ext/install.rb DESTINATION
require_relative "native_build"

begin
  Dir.mktmpdir("culet-build") { |scratch| NativeBuild.new(destination: ARGV.fetch(0), scratch: scratch).call }
rescue NativeBuild::Failed => e
  abort "culet: #{e.message}"
end
