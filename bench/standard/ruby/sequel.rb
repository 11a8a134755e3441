# frozen_string_literal: true

require "harness"
use_gemfile
require "sequel"
require "words"

DATABASE = Sequel.sqlite
DATABASE.create_table :posts do
  primary_key :id
  column :title, String
  column :body, :text
end
DATABASE.create_table :comments do
  primary_key :id
  column :post_id, Integer, index: true
  column :words, :text
end
DATABASE[:posts].multi_insert(Array.new(400) { |id| { title: Words.text(id, 6), body: Words.text(id, 120) } })
DATABASE[:comments].multi_insert(Array.new(2_000) { |id| { post_id: (id % 400) + 1, words: Words.text(id, 20) } })

class Post < Sequel::Model
  one_to_many :comments
end

class Comment < Sequel::Model
  many_to_one :post
end

run_benchmark(40) do
  Post.eager(:comments).order(:id).all.map { |post| [post.title, post.comments.sum { |one| one.words.size }] }
  DATABASE.transaction { Post.limit(50).all.each { |post| post.update(title: post.title.reverse) } }
  DATABASE[:posts].join(:comments, post_id: :id).group_and_count(:title).order(:title).all
end
