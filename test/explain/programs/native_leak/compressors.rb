# frozen_string_literal: true

# says: compressors that are kept and never closed; Ruby does not report the memory that they own
# shape: small, single
# also: ruby_leak
# growth: 30
require_relative "../../load"

require "zlib"
OPEN = []
Load.run(every: 0.5) do
  Load.work(1)
  deflate = Zlib::Deflate.new # HERE
  deflate.deflate("text " * 1_000)
  OPEN << deflate
end
