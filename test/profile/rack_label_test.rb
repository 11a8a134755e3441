# frozen_string_literal: true

require "test_helper"
require "culet/profile"

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

  def test_names_from_outside_are_limited
    app = Culet::Profile::Rack.new(->(_env) { Culet::Profile.labels["endpoint"] })
    words = ("aaa".."zzz").first(1500)
    names = words.map { |word| app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/#{word}") }
    assert_equal [1000, 500, "GET /aaa"], [names.uniq.size - 1, names.count("other"), names.first]
    assert_equal "GET /aaa", app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/aaa")
  end

  private

  def request(method, path)
    Culet::Profile::Rack.new(->(_env) { Culet::Profile.labels }).call("REQUEST_METHOD" => method, "PATH_INFO" => path)
  end
end
