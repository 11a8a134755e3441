# frozen_string_literal: true

require_relative "culet/version"
require_relative "culet/errors"
require_relative "culet/native"

# See why a Ruby process is big, fix it, prove the gain. Loading this costs a
# process the native extension and nothing else; the command line is apart.
#
# From the extension come:
# - Culet.allocator: a Hash, which malloc serves this process (:name, :version, :library) and whether it is culet (:active)
# - Culet.stats: a Hash of what that malloc holds, in bytes and blocks, or nil where it does not tell: under glibc
#   :heap_bytes, :used_bytes, :free_bytes, :large_blocks, :large_bytes; under culet these and all that
#   allocator/src/stats.h names, with :classes, an Array of Hashes, one for each size class in use
module Culet
  Native.load

  # @return [Boolean] whether the native extension is here; without it Culet.allocator and Culet.stats raise
  def self.native? = Native.loaded?

  unless native?
    # @raise [Culet::Error] always; says what the build lacked
    def self.allocator = raise(Error, Native.missing_reason("culet.so"))

    # @raise [Culet::Error] always; says what the build lacked
    def self.stats = raise(Error, Native.missing_reason("culet.so"))
  end
end
