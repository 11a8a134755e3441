# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "culet/tools/compare"

# The application that `rails new` writes, with a scaffold of posts, made once in the cache of culet's gems.
class PredictionRails
  SECONDS = 600
  POSTS = 200
  OPTIONS = %w[--skip-bundle --skip-git --skip-test --skip-bootsnap --skip-javascript --skip-action-cable
               --quiet].freeze
  SEED = "#{POSTS}.times { |n| Post.create!(title: \"Post \#{n}\", body: \"text of post \#{n} \" * 40) }".freeze

  def initialize
    @bundle = Culet::Compare::Bundle.new(name: "generated", gemfile: File.join(__dir__, "rails/Gemfile"))
  end

  def folder = File.join(Culet::Compare::Bundle.cache, "generated-application")

  # @return [Hash{String => String}] of a cluster of three workers
  def environment
    { **@bundle.environment, "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "of the loopback interface",
      "DATABASE_URL" => "sqlite3:storage/production.sqlite3", "RAILS_MAX_THREADS" => "3", "WEB_CONCURRENCY" => "3" }
  end

  # @return [String] what `rails new` has written for Puma
  def configuration = File.read(File.join(folder, "config/puma.rb"))

  def paths = %w[/posts /posts/1 /posts/new /posts.json /posts/7 /posts/9.json]

  def make
    @bundle.install(log: $stderr)
    return if File.exist?(File.join(folder, "made"))

    FileUtils.rm_rf(folder)
    rails(File.dirname(folder), "new", folder, *OPTIONS)
    rails(folder, "generate", "scaffold", "post", "title:string", "body:text", "--quiet")
    rails(folder, "db:prepare", "assets:precompile")
    rails(folder, "runner", SEED)
    FileUtils.touch(File.join(folder, "made"))
  end

  private

  def rails(directory, *words)
    command = [*PredictionPrograms.binary("railties", "rails"), *words]
    text, status = Culet::Subprocess.run(environment, *command, chdir: directory, seconds: SECONDS)
    raise Culet::Error, "rails #{words.first}: #{text.lines.last&.strip}" unless status&.success?
  end
end
