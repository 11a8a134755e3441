# frozen_string_literal: true

# Builds the native extensions into lib/culet of this checkout.
#
#   ruby ext/checkout.rb SCRATCH STAMP
#
# SCRATCH is emptied first, so that the only STAMP in it names the Ruby that they were built for. Its time is that of the
# start: what is edited meanwhile is newer.
require_relative "native_build"

scratch, stamp = ARGV
started = Time.now
begin
  FileUtils.rm_rf(scratch)
  NativeBuild.new(destination: File.expand_path("../lib/culet", __dir__), scratch: scratch, out: $stderr).extensions
  FileUtils.touch(File.join(scratch, stamp), mtime: started)
rescue NativeBuild::Failed => e
  abort "culet: #{e.message}"
end
