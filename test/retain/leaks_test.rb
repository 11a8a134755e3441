# frozen_string_literal: true

require_relative "retain_helper"

# Programs with one planted leak each, under load: growth names what keeps it. Programs without one: growth says so.
class RetainLeaksTest < Minitest::Test
  include RetainHelper

  SHARED = File.expand_path("../profile/leaks", __dir__)
  # File => what the first row of growth names.
  LEAKS = {
    "#{SHARED}/cache_by_path.rb" => /Page.*@cache/, "#{SHARED}/class_variable.rb" => /@@log/, "#{SHARED}/closure.rb" => /CALLBACKS/,
    "#{SHARED}/constant_array.rb" => /KEPT/, "#{SHARED}/event_handlers.rb" => /Bus::HANDLERS/, "#{SHARED}/fiber.rb" => /FIBERS/,
    "#{SHARED}/finalizer.rb" => /finalizer/, "#{SHARED}/hash_default.rb" => /PAGES/, "#{SHARED}/instance_variable.rb" => /REGISTRY/,
    "#{SHARED}/list_that_shrinks_too_little.rb" => /ORDERS/, "#{SHARED}/memoized.rb" => /RATES/, "#{SHARED}/packed.rb" => /CHUNKS/,
    "#{SHARED}/sleeping_thread.rb" => /WORKER|thread/i, "#{SHARED}/string_that_grows.rb" => /LOG/, "#{SHARED}/struct_list.rb" => /\$last/,
    "#{SHARED}/symbol_table.rb" => /symbol|Object|handler/, "#{SHARED}/thread_local.rb" => /seen/, "#{SHARED}/unbounded_queue.rb" => /JOBS/,
    "#{__dir__}/leaks/two_registries.rb" => /USERS|BY_NAME/, "#{__dir__}/leaks/controllers.rb" => /Notifications.*@subscribers/,
    "#{__dir__}/leaks/global_hash.rb" => /\$sessions/
  }.freeze
  STEADY = Dir["#{__dir__}/steady/*.rb"].freeze
  # Tried by the plain run; bin/test --all tries all, for longer.
  FIRST = %w[closure controllers two_registries bounded_cache filled_once].freeze

  LEAKS.each do |path, holder|
    define_method(:"test_a_leak_by_#{File.basename(path, ".rb")}") do
      skip_unless_all unless FIRST.include?(File.basename(path, ".rb"))
      growth = growth_of(path)
      assert_equal "growth", growth["verdict"], summary(growth)
      first = growth["holders"].first
      assert_match(holder, [*first["name"], *first["names"], first["kind"]].join(" "), summary(growth))
    end
  end

  STEADY.each do |path|
    define_method(:"test_no_leak_in_#{File.basename(path, ".rb")}") do
      skip_unless_all unless FIRST.include?(File.basename(path, ".rb"))
      growth = growth_of(path)
      assert_equal "none", growth["verdict"], summary(growth)
    end
  end

  private

  def growth_of(path)
    with_load(path) { |pid| retain(pid, "--growth", "--for", all_tests? ? "60s" : "6s")["growth"] }
  end

  def summary(growth)
    growth["holders"].first(5).map { |one| [one["name"] || one["names"], one["each_bytes"]].inspect }.join("\n")
  end
end
