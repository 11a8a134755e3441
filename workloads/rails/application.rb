# frozen_string_literal: true

# The Rails application that the workloads rails, cluster and cluster-warm serve:
# posts with comments in SQLite through Active Record, shown by Action View as a
# list, as one page and as JSON; every tenth request writes a comment.
#
# CULET_WORKLOAD_DIR is a directory for the database, CULET_SCALE multiplies the
# number of posts. Loading this file makes and fills the database.

ENV["RAILS_ENV"] = "production"

require "action_controller/railtie"
require "active_record/railtie"
require "action_view/railtie"
require "fileutils"

SCALE = Float(ENV.fetch("CULET_SCALE", "1"))
DIRECTORY = ENV.fetch("CULET_WORKLOAD_DIR")
THREADS = 5
POSTS = (400 * SCALE).ceil.clamp(20, nil)
COMMENTS_PER_POST = 5
PAGE = 20

ENV["DATABASE_URL"] = "sqlite3:#{File.join(DIRECTORY, "posts.sqlite3")}?pool=#{THREADS + 1}&timeout=5000"

VIEWS = {
  "index" => <<~ERB,
    <h1>Posts</h1>
    <% @posts.each do |post| %>
      <article><h2><%= link_to post.title, post_path(post) %></h2><p><%= truncate(post.body, length: 200) %></p>
      <p><%= pluralize(post.comments.size, "comment") %>, <%= time_ago_in_words(post.created_at) %> ago</p></article>
    <% end %>
  ERB
  "show" => <<~ERB
    <h1><%= @post.title %></h1><%= simple_format(@post.body) %>
    <ul><% @post.comments.each do |comment| %><li><b><%= comment.author %></b>: <%= comment.text %></li><% end %></ul>
  ERB
}.freeze
views = File.join(DIRECTORY, "app/views/posts")
FileUtils.mkdir_p(views)
VIEWS.each { |name, text| File.write(File.join(views, "#{name}.html.erb"), text) }

class Blog < Rails::Application
  config.root = DIRECTORY
  config.load_defaults("#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}")
  config.eager_load = true
  config.secret_key_base = "for a server of the loopback interface that lives for some seconds"
  config.logger = ActiveSupport::Logger.new(File::NULL)
  config.log_level = :warn
  config.hosts.clear
  config.active_record.migration_error = false
  config.public_file_server.enabled = false
end

# Controllers get the routes' helpers only when they are defined after this.
Blog.initialize!
Blog.routes.draw do
  root to: "posts#any"
  resources :posts, only: :show, to: "posts#any"
end

class Post < ActiveRecord::Base
  has_many :comments
end

class Comment < ActiveRecord::Base
  belongs_to :post
end

class PostsController < ActionController::Base
  skip_forgery_protection

  # One address, so that any load generator can call it: a counter picks the page.
  def any
    number = Counter.next
    if (number % 10).zero? then comment(number)
    elsif (number % 3).zero? then show(number)
    elsif (number % 3) == 1 then index(number)
    else as_json(number)
    end
  end

  private

  def page(number) = Post.includes(:comments).order(:id).offset((number * 7) % (POSTS - PAGE + 1)).limit(PAGE)

  def index(number)
    @posts = page(number)
    render("posts/index")
  end

  def show(number)
    @post = Post.includes(:comments).find(1 + (number % POSTS))
    render("posts/show")
  end

  def as_json(number) = render(json: page(number).as_json(include: :comments))

  # An old comment makes room, so that the work does not grow with the number of requests.
  def comment(number)
    post = Post.find(1 + (number % POSTS))
    oldest = post.comments.order(:id).first
    # The transaction writes first: one that reads first is refused at once when another process writes meanwhile.
    Comment.transaction do
      oldest&.destroy!
      post.comments.create!(author: "visitor #{number}", text: "a comment on #{post.title}, the #{number}th; " * 3)
    end
    redirect_to(post_path(post))
  end
end

module Counter
  LOCK = Mutex.new
  private_constant :LOCK

  def self.next = LOCK.synchronize { @number = @number.to_i + 1 }
end

ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table(:posts) { |table| table.string(:title) && table.text(:body) && table.timestamps }
  create_table(:comments) do |table|
    table.references(:post) && table.string(:author) && table.text(:text) && table.timestamps
  end
end
Post.transaction do
  POSTS.times do |number|
    post = Post.create!(title: "Post #{number}", body: "Some text of post #{number}. " * (20 + (number % 60)))
    COMMENTS_PER_POST.times do |count|
      post.comments.create!(author: "reader #{count}", text: "I agree with #{post.title}. " * 4)
    end
  end
end
