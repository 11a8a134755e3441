# frozen_string_literal: true

require "test_helper"
require "rubygems/package"
require "rubygems/user_interaction"
require_relative "../servers/server_helper"
require_relative "../servers/rails/rails_helper"

# Systems without a native part (macOS, BSD), by a Ruby that says that it runs on one and has no compiled file of culet.
class ElsewhereTest < Minitest::Test
  include ServerHelper

  PLATFORM = "arm64-darwin23"
  SENTENCE = "culet: culet works on Linux, and this is #{PLATFORM}: it changes and records nothing here\n".freeze
  ENTRIES = %w[culet culet/agent culet/auto culet/blackbox culet/limit culet/metrics culet/profile culet/require culet/unused].freeze

  # With the gems of the rails workload.
  module Rails
    extend RailsHelper
    extend TestHelper

    def self.skip(sentence) = raise(Minitest::Skip, sentence)
  end

  def setup
    @directory = new_folder
    copy_ruby_files(@directory)
    FileUtils.rm_f(%w[culet culet_boot].map { |name| "#{@directory}/lib/culet/#{name}.so" })
    @fake = File.join(@directory, "fake.rb")
    File.write(@fake, <<~RUBY)
      require "rbconfig"
      RbConfig::CONFIG["host_os"] = "darwin23"
      Object.send(:remove_const, :RUBY_PLATFORM)
      RUBY_PLATFORM = #{PLATFORM.dump}
    RUBY
  end

  ENTRIES.each do |entry|
    define_method(:"test_#{entry.tr("/", "_")}_loads_with_one_line_at_most") do
      out, err, status = ruby("-r#{entry}", "-e", "p Culet::Native.load")
      assert_predicate status, :success?, err
      assert_equal "false\n", out
      assert_includes ["", SENTENCE], err
    end
  end

  def test_all_parts_say_it_once
    out, err, = ruby(*ENTRIES.map { |entry| "-r#{entry}" }, "-e", "p 1")
    assert_equal ["1\n", SENTENCE], [out, err]
  end

  # What else is wrong is still named.
  def test_a_wrong_setting_is_named_too
    _, err, = ruby("-rculet/auto", "-e", "1", env: { "CULET_TRIM" => "sometimes" })
    assert_match(/^culet: .*CULET_TRIM/, err)
    assert_includes err, SENTENCE
  end

  def test_methods_and_the_command_line_give_the_reason
    out, = ruby("-rculet", "-e", "begin; Culet.stats; rescue Culet::Error => e; puts e.message; end")
    assert_equal "culet's native part is for Linux, and this is #{PLATFORM}\n", out
    %w[lib run].zip([[], %w[-- true]]).each do |verb, words|
      _, err, status = ruby("-r#{ROOT}/bin/gems.rb", "#{ROOT}/exe/culet", verb, *words)
      assert_equal 1, status.exitstatus
      assert_match(/\Aculet: culet's native part is for Linux, and this is #{PLATFORM}$/, err)
    end
    _, err, status = ruby("-r#{ROOT}/bin/gems.rb", "#{ROOT}/exe/culet", "--help")
    assert_predicate status, :success?, err
  end

  def test_puma_starts_with_the_plugin = assert_serves("run ->(_) { [200, {}, [\"served\"]] }", bundle)

  def test_rails_starts_with_the_plugin
    assert_serves(<<~RUBY, Rails.bundle)
      require "action_controller/railtie"
      require "culet"
      class Application < Rails::Application
        config.eager_load = true
        config.secret_key_base = "0" * 64
        config.logger = Logger.new(nil)
        config.hosts.clear
      end
      Application.initialize!
      Application.routes.draw { root to: ->(_) { [200, {}, ["served"]] } }
      run Application
    RUBY
  end

  # Bundler chooses a gem for each platform of the lockfile: the platform gems on Linux, the source gem elsewhere.
  def test_a_lockfile_with_several_platforms
    index = gem_index
    app = File.join(@directory, "app")
    Dir.mkdir(app)
    File.write(File.join(app, "Gemfile"), "source \"file://#{index}\"\ngem \"culet\"\n")
    env = NEUTRAL.merge("BUNDLE_GEMFILE" => File.join(app, "Gemfile"), "BUNDLE_SILENCE_ROOT_WARNING" => "1", "BUNDLE_APP_CONFIG" => app)
    platforms = %w[ruby x86_64-linux aarch64-linux arm64-darwin x86_64-freebsd]
    assert_success("bundle", "lock", "--add-platform", *platforms, env: env, chdir: app)
    lock = File.read(File.join(app, "Gemfile.lock"))
    platforms.each { |platform| assert_match(/^  #{platform}$/, lock) }
    assert_match(/^    culet \(#{Regexp.escape(Culet::VERSION)}\)$/, lock)
    assert_match(/^    culet \(#{Regexp.escape(Culet::VERSION)}-aarch64-linux\)$/, lock)
  end

  private

  def ruby(*words, env: {})
    run_program(RbConfig.ruby, "-I#{@directory}/lib", "-r#{@fake}", *words, env: NEUTRAL.merge("CULET_LIMIT" => "1G").merge(env))
  end

  def assert_serves(application, gems)
    rackup = File.join(@directory, "config.ru")
    File.write(rackup, application)
    configuration = File.join(@directory, "puma.rb")
    File.write(configuration, "bind \"tcp://127.0.0.1:\#{ENV.fetch('PORT')}\"\nworkers 2\npreload_app!\nplugin :culet\n")
    env = { "RUBYLIB" => "#{@directory}/lib", "RUBYOPT" => "-r#{@fake}" }
    served = ->(server) { server.get("/") == "served" rescue false } # rubocop:disable Style/RescueModifier
    with_server("puma", "-C", configuration, rackup, env: env, gems: gems, up: served) do |server|
      assert_equal "served", server.get("/")
      assert_equal 1, server.output.scan(SENTENCE.chomp).size, server.output
    end
  end

  # An index of gems in a folder, as rubygems.org has it: the source gem, and one for a platform.
  def gem_index
    folder = File.join(@directory, "index")
    FileUtils.mkdir_p(File.join(folder, "gems"))
    [Gem::Platform::RUBY, Gem::Platform.new("aarch64-linux")].each { |platform| bare_gem(File.join(folder, "gems"), platform) }
    script = "require 'rubygems/indexer'; Gem::Indexer.new(ARGV[0]).generate_index"
    _, err, status = run_program(RbConfig.ruby, "-e", script, folder, env: NEUTRAL)
    skip "this RubyGems makes no index: #{err.lines.first}" unless status.success?
    folder
  end

  # With culet's specification and one file.
  def bare_gem(folder, platform)
    specification = Gem::Specification.load("#{ROOT}/culet.gemspec").dup
    specification.platform = platform
    specification.files = ["LICENSE.txt"]
    specification.extensions = []
    specification.executables = []
    Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) do
      Dir.chdir(ROOT) { Gem::Package.build(specification, true, false, File.join(folder, specification.file_name)) }
    end
  end
end
