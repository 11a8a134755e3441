# frozen_string_literal: true

require "servers/rails/rails_helper"
require "culet/system/ruby_options"

# config.culet.trim in a real Rails, with the gems of the rails workload.
class RailtieTest < Minitest::Test
  include RailsHelper

  APPLICATION = File.expand_path("application.rb", __dir__)

  def test_it_is_off_unless_asked_for
    assert_equal "[false, false, \"off\"]\n", boot
  end

  def test_the_configuration_switches_it_on
    assert_equal "[true, true, \"background\"]\n", boot(configured: true)
  end

  def test_an_initializer_has_its_say
    assert_equal "[true, true, \"background\"]\n", boot(initializer: "Rails.application.config.culet.trim = true")
    assert_equal "[false, false, \"off\"]\n", boot(configured: true, initializer: "Rails.application.config.culet.trim = false")
  end

  def test_an_initializer_sets_a_memory_limit
    initializer = "Rails.application.config.culet.limit = '9T'\nat_exit { p Culet::Limit.status['limit_bytes'], Culet::Limit.status['source'] }"
    lines = boot(initializer: initializer).lines(chomp: true)
    assert_equal [(9 << 40).to_s, "setting".inspect], lines.last(2)
  end

  ORDERS = File.expand_path("orders.rb", __dir__)
  DONE = [1, true, "background", 9 << 40, 1].inspect.freeze
  # What is loaded before Rails: nothing, Puma's plugin, a part by RUBYOPT.
  FIRST = [nil, :plugin, *Culet::RubyOptions::PARTS].freeze
  # What the Gemfile makes Bundler require, before or behind Rails.
  GEMFILE = ["culet", "culet/auto", "culet/railtie", nil].product(%w[BEFORE AFTER]).freeze
  # These, and a Puma, stand for all; the others run with --all.
  TYPICAL = [["profile", "culet", "AFTER", "copy"], ["auto", "culet/auto", "AFTER", "lib"]].freeze

  # Without culet, or without a second copy, there is nothing to try.
  ALL = FIRST.product(GEMFILE, %w[lib copy]).map(&:flatten).reject { |first, feature, _, library| first.nil? && (feature.nil? || library == "copy") }

  (ENV.key?("CULET_TEST_ALL") ? ALL : TYPICAL).each do |first, feature, order, library|
    name = "#{first || "nothing"}_of_#{library}_first_and_#{feature || "no_require"}_#{order.downcase}_rails".tr("/", "_")
    define_method("test_#{name}") do
      assert_equal "#{DONE}\n", boot_in_order(first, feature, order, library)
    end
  end

  # As `bundle exec puma` starts it, with the application in config.ru.
  def test_puma_with_the_plugin_and_its_settings
    environment = bundle.environment
    directory = new_folder
    File.write("#{directory}/config.ru", "ENV['AFTER'] = 'culet'\nrequire #{ORDERS.dump}\n$stdout.flush\nrun Application\n")
    File.write("#{directory}/puma.rb", "bind 'unix://#{directory}/socket'\nplugin :culet\nlog_requests false\n")
    env = NEUTRAL.merge(environment, "APPLICATION_ROOT" => directory, "RUBYLIB" => "#{ROOT}/lib", "CULET_PROFILE" => "1", "CULET_TRIM" => nil)
    command = ["bundle", "exec", "puma", "-C", "#{directory}/puma.rb", "#{directory}/config.ru"]
    with_started(*command, env: env, chdir: directory, err: %i[child out]) do |_, output|
      lines = output.each_line.lazy.map(&:chomp).take_while { |line| !line.include?("Use Ctrl-C to stop") }.to_a
      assert_includes lines, DONE, lines.join("\n")
    end
  end

  def test_without_rails_there_is_no_railtie
    out, err = assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-rculet", "-e", "p defined?(Culet::Railtie)", env: NEUTRAL)
    assert_equal ["nil\n", ""], [out, err]
  end

  private

  # @param first [String, Symbol, nil] of FIRST, of the copy of culet in `library`
  # @param feature [String, nil] what Bundler requires, of the checkout
  # @param order [String] BEFORE or AFTER Rails
  # @param library [String] "lib", or "copy" of it
  # @return [String] what the application printed
  def boot_in_order(first, feature, order, library)
    Dir.mktmpdir do |directory|
      copy_ruby_files("#{directory}/copy")
      copy = library == "lib" ? "#{ROOT}/lib" : "#{directory}/copy/lib"
      env = { "BEFORE" => nil, "AFTER" => nil, order => feature }
      env["BEFORE"] = [("#{copy}/puma/plugin/culet culet/auto" if first == :plugin), env["BEFORE"]].compact.join(" ")
      env["RUBYOPT"] = "-r#{copy}/culet/#{first}.rb" if first.is_a?(String)
      out, err = assert_success(RbConfig.ruby, "-I#{ROOT}/lib", "-rbundler/setup", ORDERS, chdir: directory,
                                env: NEUTRAL.merge(bundle.environment, "APPLICATION_ROOT" => directory, "CULET_TRIM" => nil,
                                                                           "CULET_LIMIT" => ("9T" if first == "limit"), **env))
      assert_empty err
      out
    end
  end

  # @param configured [Boolean, nil] what the application's configuration says; nil: nothing
  # @param initializer [String, nil] of the application, a file in config/initializers
  # @return [String] what the application said
  def boot(configured: nil, initializer: nil)
    Dir.mktmpdir do |directory|
      if initializer
        FileUtils.mkdir_p("#{directory}/config/initializers")
        File.write("#{directory}/config/initializers/culet.rb", initializer)
      end
      out, err = assert_success(RbConfig.ruby, "-I#{ROOT}/lib", "-rbundler/setup", APPLICATION, chdir: directory,
                                env: NEUTRAL.merge(bundle.environment, "APPLICATION_ROOT" => directory, "CULET_TRIM" => nil,
                                                                           "CONFIGURED" => configured&.to_s))
      assert_empty err
      out
    end
  end
end
