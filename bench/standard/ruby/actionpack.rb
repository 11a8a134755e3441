# frozen_string_literal: true

require "harness"
use_gemfile
require "action_controller"
require "action_view"
require "fileutils"
require "words"

FileUtils.mkdir_p("posts")
File.write("posts/index.html.erb", <<~'ERB')
  <h1>Posts</h1>
  <% posts.each do |id, title, body| %>
    <article id="<%= id %>"><h2><%= link_to title, "/posts/#{id}" %></h2><%= simple_format body %>
    <p><%= truncate(body, length: 80) %>, <%= number_with_delimiter(body.size) %></p></article>
  <% end %>
ERB

class PostsController < ActionController::Base
  POSTS = Array.new(40) { |id| [id, Words.text(id, 6), Words.paragraphs(id, 2)] }
  self.view_paths = Dir.pwd
  helper_method :posts

  def index = respond_to { |format| [format.html, format.json { render(json: POSTS) }] }

  private

  def posts = POSTS
end

ROUTES = ActionDispatch::Routing::RouteSet.new
ROUTES.draw { get "/posts", to: "posts#index", format: false }

def answer(type)
  status, _, body = ROUTES.call(Rack::MockRequest.env_for("/posts", "HTTP_ACCEPT" => type))
  raise "status #{status}" unless status == 200

  body.each(&:itself)
  body.close
end

# A server of four threads.
run_benchmark(1) do
  threads = Array.new(4) do
    Thread.new { 50.times { |number| answer(number.odd? ? "text/html" : "application/json") } }
  end
  threads.each(&:join)
end
