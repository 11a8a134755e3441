# frozen_string_literal: true

# Calls the public API with the types of every call checked against sig/culet.rbs; a call that differs raises.
#
#   RBS_TEST_RAISE=true RBS_TEST_OPT="-I sig" RBS_TEST_TARGET="Culet,Culet::*" bundle exec ruby -Ilib test/signatures/calls.rb
require "rbs/test/setup"
require "tmpdir"
require "culet/auto"
require "culet/require"
require "culet/feature_index"
require "culet/unused"
require "culet/agent"
require "culet/limits"

Culet.allocator
Culet.stats
Culet.trim
Culet.trim_stats
Culet.native?
Culet.report(objects: false)
Culet::Warmup.requests = []
Culet::Warmup.serve_requests
Culet.warmup(steps: [:collect]) { :loaded }
Culet::Trim.waits?
Culet::Require.figures
Culet::Agent.listening?
Culet::Agent.problem
Culet::Unused.follow
Culet::Unused.started?
Culet::Unused.document
Culet::Limits.bytes("80MB")
Dir.mktmpdir do |folder|
  Culet.snapshot(File.join(folder, "own.snapshot"))
  File.write(File.join(folder, "feature.rb"), "")
  index = Culet::FeatureIndex.new
  index.scan(folder)
  index.add(File.join(folder, "feature.rb"), below: folder)
  index.find("feature")
  index.changed
  index.allocations
  kept = Culet::FeatureIndex.open(index.write(File.join(folder, "features.index")))
  puts kept.files.size + kept.folders.size, kept.bytes.positive?
end
