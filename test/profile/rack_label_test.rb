# frozen_string_literal: true

require "test_helper"
require "culet/profile"
require "culet/runtime/profile/endpoints"

# The label of a request.
class RackLabelTest < Minitest::Test
  NAMES = { ["GET", "/"] => "GET /", ["GET", ""] => "GET /", ["POST", "/issues/42/notes/9f"] => "POST /issues/:id/notes/:id",
            ["GET", "/#{"x" * 33}/edit"] => "GET /:id/edit", ["BREW", "/pot"] => "OTHER /pot", ["GET", "/a\xff"] => 'GET /a\xff',
            ["GET", "/a/b/c/d/e/f/g/h/i/j"] => "GET /a/b/c/d/e/f/g/h/..." }.freeze

  def test_method_and_path_without_identifiers
    NAMES.each { |(method, path), name| assert_equal({ "endpoint" => name }, request(method, path)) }
  end

  def test_the_mount_point_is_part_of_it
    app = Culet::Profile::Rack.new(->(_env) { Culet::Profile.labels })
    assert_equal({ "endpoint" => "GET /admin/users" }, app.call("REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "/admin", "PATH_INFO" => "/users"))
  end

  def test_an_inner_label_is_more_exact_and_exceptions_pass
    app = Culet::Profile::Rack.new(->(_env) { Culet::Profile.label(endpoint: "issues#show") { raise IOError, Culet::Profile.labels["endpoint"] } })
    assert_equal "issues#show", assert_raises(IOError) { app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/") }.message
    assert_empty Culet::Profile.labels
  end

  WORDS = ("aaaa".."zzzz").first(6000).freeze

  def test_paths_that_do_not_exist_take_no_names
    { 1000 => 404, 5000 => 404, 6000 => 200 }.each do |count, status|
      app = application { |path| path == "/checkout" ? 200 : status }
      labels = WORDS.first(count).map { |word| app.call("/#{word}") }
      assert_equal ["GET /aaaa", "GET /abml", 1000], [*labels.values_at(0, 999), labels.first(1000).uniq.size]
      assert_equal [], labels.drop(1000).uniq - ["other"]
      assert_equal ["other", "other", "GET /checkout", "GET /checkout"], Array.new(4) { app.call("/checkout") }
      assert_equal status == 404 ? "other" : "GET /aaaa", app.call("/aaaa")
    end
  end

  # Beside ten times as many that exist, each of which is requested once.
  def test_a_frequent_path_gets_and_keeps_its_name
    app = application { 200 }
    WORDS.first(1000).each { |word| app.call("/#{word}") } # these get the names that are given at once
    labels = WORDS.drop(1000).each_slice(10).map do |words|
      words.each { |word| app.call("/#{word}") }
      app.call("/checkout")
    end
    assert_equal ["other", "other", "GET /checkout"], labels.first(3)
    assert_equal ["GET /checkout"], labels.drop(2).uniq
  end

  def test_who_repeats_paths_does_not_fill_the_table_of_labels
    endpoints = Culet::Profile::Endpoints.new
    WORDS.each { |word| 10.times { endpoints.found(word) } }
    assert_operator WORDS.count { |word| endpoints.label(word) == word }, :<, 3000 # 1,000 at once, then 500 each
  end

  def test_counts_age
    endpoints = Culet::Profile::Endpoints.new(age: 1000)
    990.times { endpoints.found("old") }
    10.times { |number| endpoints.found(number.to_s) }
    assert_equal [495, 1], endpoints.instance_variable_get(:@entries).values_at("old", "9").map(&:count)
  end

  def test_routes_come_before_paths
    app = Culet::Profile::Rack.new(lambda do |env|
      env["action_dispatch.request.path_parameters"] = { controller: "admin/issues", action: "show" } if env["PATH_INFO"].start_with?("/issues")
      env["sinatra.route"] = "GET /:name" if env["PATH_INFO"] == "/about"
      [200, {}, [Culet::Profile.labels["endpoint"]]]
    end)
    labels = %w[/issues/4 /issues/5 /about /about].map { |path| app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path).last.first }
    assert_equal ["GET /issues/:id", "admin/issues#show", "GET /about", "GET /:name"], labels
  end

  private

  # Its `call` takes a path, and returns the label; the block makes the status.
  def application
    label = nil
    rack = Culet::Profile::Rack.new(lambda do |env|
      label = Culet::Profile.labels["endpoint"]
      [yield(env["PATH_INFO"]), {}, []]
    end)
    lambda do |path|
      rack.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path)
      label
    end
  end

  def request(method, path)
    Culet::Profile::Rack.new(->(_env) { Culet::Profile.labels }).call("REQUEST_METHOD" => method, "PATH_INFO" => path)
  end
end
