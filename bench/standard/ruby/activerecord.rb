# frozen_string_literal: true

require "harness"
use_gemfile
require "active_record"
require "words"

ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table :posts do |table|
    table.string :title
    table.text :body
  end
  create_table :comments do |table|
    table.belongs_to :post
    table.text :words
  end
end

class Post < ActiveRecord::Base
  has_many :comments
end

class Comment < ActiveRecord::Base
  belongs_to :post
end

Post.insert_all(Array.new(400) { |id| { id: id + 1, title: Words.text(id, 6), body: Words.text(id, 120) } })
Comment.insert_all(Array.new(2_000) { |id| { post_id: (id % 400) + 1, words: Words.text(id, 20) } })

run_benchmark(12) do
  Post.includes(:comments).order(:id).map { |post| [post.title, post.comments.sum { |comment| comment.words.size }] }
  Post.transaction { Post.limit(50).each { |post| post.update!(title: post.title.reverse) } }
  Post.joins(:comments).group("posts.id").order(:title).pluck(:title, Arel.sql("count(*)"))
end
