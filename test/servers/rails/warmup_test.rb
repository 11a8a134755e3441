# frozen_string_literal: true

require "servers/rails/rails_helper"

# Culet.warmup with requests in a real Rails: it finds the application, and leaves no connection open that a child would
# share with its parent.
class RailsWarmupTest < Minitest::Test
  include RailsHelper

  APPLICATION = File.expand_path("../../../workloads/rails/application.rb", __dir__)

  SCRIPT = <<~RUBY
    require "culet"
    open = -> { ActiveRecord::Base.connection_handler.connection_pool_list(:all).sum { |pool| pool.connections.size } }
    Post.first
    before = open.call
    steps = Culet.warmup(requests: ["/", "/posts/1?from=here", "/nowhere"], steps: [:collect])[:steps]
    p before.positive?, steps, open.call, Counter.next
    reader, writer = IO.pipe
    fork { writer.puts(Post.count); exit! }
    p reader.gets.to_i == Post.count
    Process.wait
  RUBY

  def test_the_application_is_found_and_its_connections_are_closed
    directory = new_folder
    out, err, status = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rbundler/setup", "-r#{APPLICATION}", "-e", SCRIPT,
                                   env: NEUTRAL.merge(bundle.environment, "CULET_WORKLOAD_DIR" => directory, "CULET_SCALE" => "0.05"))
    assert status.success?, err
    assert_equal ["true", '["requests", "connections", "collect"]', "0", "3", "true"], out.lines(chomp: true)
    assert_equal "culet: the request for https://localhost/nowhere returned status 404\n", err
  end
end
