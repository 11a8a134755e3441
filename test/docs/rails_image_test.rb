# frozen_string_literal: true

require "net/http"
require "test_helper"
require_relative "../../packaging/source_gem"
require_relative "../roots/in_tests"
require_relative "../servers/rails/rails_helper"
require_relative "page"
require_relative "podman"

# The Dockerfile and the entry point that `rails new` writes, with the lines of the guide's page, as it has them: built,
# run, checked by its commands, and taken out again. The image of Ruby is Debian's here, set up as the published one is.
class DocsRailsImageTest < Minitest::Test
  PAGE = Page.new("docs/guide/rails-dockerfile.md")
  # What is left out needs gems that the workload does not have, or programs of the machine.
  NEW = %w[rails new shop --minimal --skip-asset-pipeline --skip-bundle --skip-git --no-rc --quiet].freeze
  # The release whose Ruby the workload's gems are for.
  SUITE = "bookworm"
  RUBY = "3.1."
  IMAGE_OF_RUBY = <<~TEXT
    FROM %s
    RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends ruby ruby-dev bundler
    ENV GEM_HOME=/usr/local/bundle BUNDLE_APP_CONFIG=/usr/local/bundle BUNDLE_SILENCE_ROOT_WARNING=1 PATH=/usr/local/bundle/bin:$PATH
    RUN bundle config set --global mirror.https://rubygems.org file:///srv/gems
  TEXT
  SERVED = %r{^ok +allocator +culet serves malloc \(/usr/local/bundle/ruby/\S+/libculet\.so\)$}
  # Rails 7.2 leaves it to the reader.
  DATABASE = "sqlite3:storage/production.sqlite3"
  PATIENCE_SECONDS = 1_800

  include RailsHelper
  include Roots::InTests

  def setup
    skip_unless_all
    skip "Debian 12 has Ruby #{RUBY}x, this is #{RUBY_VERSION}" unless RUBY_VERSION.start_with?(RUBY)

    @folder = new_folder
    @podman = Podman.new(@folder)
    gems = ["#{ROOT}/.gems", bundle.environment["BUNDLE_PATH"]].flat_map { |path| Dir["#{path}/ruby/*/cache/*.gem"] }
    @gems = [*Packaging::SourceGem.all(@folder), *gems.uniq { |path| File.basename(path) }]
  rescue Podman::Missing => e
    skip e.message
  end

  def teardown = @podman&.close

  def test_the_image_of_rails_new
    write_application
    import_ruby
    install = block("sh", 0)
    host(install)
    assert_in_container { |container| assert_match(/^malloc: jemalloc/, say(container, "report")) }
    put_in
    assert_in_container { |container| assert_culet(container) }
    put_in(back: true)
    host(install.sub("add", "remove"))
    assert_includes PAGE.text, "`#{install.sub("add", "remove").chomp}`"
    assert_in_container { |container| assert_includes maps(container), "libjemalloc" }
  end

  private

  def write_application
    @application = "#{@folder}/shop"
    program("bundle", "exec", *NEW, env: bundle.environment, chdir: @folder)
    gems = bundle.environment["BUNDLE_PATH"]
    FileUtils.cp_r(gems, "#{@folder}/bundle")
    %w[Gemfile Gemfile.lock].each { |name| FileUtils.cp("#{File.dirname(gems)}/#{name}", @application) }
  end

  def import_ruby
    name = "docker.io/library/ruby:#{dockerfile[/^ARG RUBY_VERSION=(.*)/, 1]}-slim"
    assert_includes dockerfile, "FROM docker.io/library/ruby:$RUBY_VERSION-slim AS base\n"
    @podman.import(name, plain_root(SUITE), @gems)
    Dir.mktmpdir("ruby", @folder) { |context| @podman.build(name, format(IMAGE_OF_RUBY, name), context) }
  end

  def dockerfile = File.read("#{@application}/Dockerfile")

  # The page's diff.
  def put_in(back: false)
    old, new = block("diff", 0).scan(/^[-+](.*\n)/).flatten
    old, new = new, old if back
    path = "#{@application}/bin/docker-entrypoint"
    text = File.read(path)
    assert_equal old, text.lines.last
    File.write(path, text.delete_suffix(old) + new)
  end

  def block(language, index) = PAGE.blocks.select { |block| block.language == language }.fetch(index).code

  # Runs a line of the page on the reader's machine, where the gems of the application are installed.
  def host(line)
    source = @source ||= GemSource.write(@gems, "#{@folder}/source")
    env = bundle.environment.merge("BUNDLE_GEMFILE" => "#{@application}/Gemfile", "BUNDLE_PATH" => "#{@folder}/bundle",
                                   "BUNDLE_APP_CONFIG" => "#{@folder}/config", "BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/" => source)
    program(*line.split, env: env, chdir: @application)
  end

  def program(*words, env:, chdir:)
    assert_success(*words, env: NEUTRAL.merge(env), chdir: chdir, patience: PATIENCE_SECONDS)
  end

  # The image is built as the application is now, and serves a page.
  def assert_in_container
    @podman.build("shop", dockerfile, @application)
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    key = File.read("#{@application}/config/master.key")
    @podman.with_container("shop", "--env", "RAILS_MASTER_KEY=#{key}", "--env", "PORT=#{port}",
                           "--env", "DATABASE_URL=#{DATABASE}") do |container|
      @podman.first_line(container, /Listening on/)
      answer = Net::HTTP.start("127.0.0.1", port) { |http| http.get("/up", "X-Forwarded-Proto" => "https") }
      assert_equal "200", answer.code
      yield container
    end
  end

  def assert_culet(container)
    assert_match SERVED, say(container, "doctor")
    assert_match SERVED, block("text", 0)
    assert_match(/^malloc: culet/, say(container, "report"))
    refute_includes maps(container), "libjemalloc"
    status = @podman.podman("exec", container, "cat", "/proc/1/status")
    assert_equal ["1000"], status[/^Uid:(.*)/, 1].split.uniq
  end

  # Runs the page's command with this verb.
  def say(container, verb)
    words = PAGE.text[/docker exec CONTAINER ([^`\n]* #{verb} [^`\n]*)/, 1].split
    @podman.podman("exec", container, *words)
  end

  def maps(container) = @podman.podman("exec", container, "cat", "/proc/1/maps")
end
