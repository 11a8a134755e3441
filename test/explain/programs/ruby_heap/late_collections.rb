# frozen_string_literal: true

# says: variables let garbage of malloc grow to hundreds of megabytes
# shape: Sinatra in Puma, threaded
# garbage: 80
# env: RUBY_GC_MALLOC_LIMIT=150000000 RUBY_GC_MALLOC_LIMIT_MAX=150000000 RUBY_GC_OLDMALLOC_LIMIT=200000000 RUBY_GC_OLDMALLOC_LIMIT_MAX=200000000 RUBY_GC_HEAP_INIT_SLOTS=400000 RUBY_GC_HEAP_0_INIT_SLOTS=400000 RUBY_GC_HEAP_1_INIT_SLOTS=100000 RUBY_GC_HEAP_2_INIT_SLOTS=100000 RUBY_GC_HEAP_INIT_BYTES=40000000
require_relative "../../load"
Load.client(%w[/page], every: 0.05)
require "bundler/setup"
require "sinatra/base"

class Shop < Sinatra::Base
  set :environment, :production
  set :host_authorization, { permitted_hosts: [] }
  get("/up") { "up" }
  get("/page") { Array.new(300) { |row| "row #{row} ".ljust(1_500, "x") }.last } # HERE
end
Load.puma(Shop)
