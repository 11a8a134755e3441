# frozen_string_literal: true

# says: a variable asks for two million slots
# shape: Rack in Puma, threaded
# free_slots: 60
# env: RUBY_GC_HEAP_INIT_SLOTS=2000000 RUBY_GC_HEAP_0_INIT_SLOTS=2000000 RUBY_GC_HEAP_INIT_BYTES=80000000
require_relative "../../load"
Load.client(%w[/page], every: 0.1)
require "bundler/setup"
1_500_000.times { Object.new } # from Ruby 3.3 on pages are taken as they are needed
APPLICATION = ->(_) { [200, { "content-type" => "text/plain" }, [Load.work(1)]] } # HERE
Load.puma(APPLICATION)
