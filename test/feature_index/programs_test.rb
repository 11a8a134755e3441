# frozen_string_literal: true

require_relative "require_helper"
require "culet/tools/compare/bundle"

# Programs that load much load the same with culet/require, in the same order.
class FeatureIndexProgramsTest < Minitest::Test
  include RequireHelper

  RAILS = File.join(ROOT, "workloads/rails")
  private_constant :RAILS

  def test_rdoc
    run = assert_as_plain(<<~'RUBY')
      require "rdoc"
      File.write("here.rb", "# A class.\nclass Here\n  # A method.\n  def it = 1\nend\n")
      options = RDoc::Options.load_options
      options.parse(%w[--quiet --format ri --op documented here.rb])
      RDoc::RDoc.new.document(options)
      puts Dir.glob("documented/**/*").sort
      require "fileutils"
      FileUtils.rm_rf(%w[documented here.rb])
    RUBY
    assert_operator run.features.size, :>, 100
    assert_operator run.figures["found"], :>, 50
  end

  def test_bundler_and_what_it_replaces
    project = new_folder
    File.write("#{project}/Gemfile", "source 'https://rubygems.org'\ngem 'json'\ngem 'stringio'\n")
    env = { "BUNDLE_GEMFILE" => "#{project}/Gemfile", "BUNDLE_SILENCE_ROOT_WARNING" => "1", "BUNDLE_APP_CONFIG" => "#{project}/config" }
    # The first time Bundler resolves the Gemfile, with parts of its own that it does not load again.
    run_program(RbConfig.ruby, "-rbundler/setup", "-e", "0", env: NEUTRAL.merge(env), chdir: project)
    # In the middle, too: Bundler then has copied the method that was Ruby's back to its place.
    ['require "bundler/setup"', 'require "bundler/setup"; require "culet/require" if $LOADED_FEATURES.grep(%r{culet/require.rb}).any?'].each do |setup|
      run = assert_as_plain(<<~RUBY, env: env)
        #{setup}
        Bundler.require
        p require("json"), require("strscan"), require("stringio")
        begin; require "nonesuch"; rescue LoadError => e; puts e.message, e.path; end
        require "bundler/cli"
        p Gem.loaded_specs.keys.sort
      RUBY
      assert_operator run.figures["found"], :>, 10
    end
  end

  def test_late_in_a_bundle
    project = new_folder
    File.write("#{project}/Gemfile", "gem 'json'\n")
    script = 'require "bundler/setup"; require "culet/require"; require "json"; require "optparse"; p Culet::Require.figures[:found].positive?'
    out, err, status = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-e", script,
                                   env: NEUTRAL.merge("BUNDLE_GEMFILE" => "#{project}/Gemfile", "CULET_REQUIRE_CACHE" => cache))
    assert_equal ["true\n", 0], [out, status.exitstatus], err
  end

  def test_rails
    bundle = gems("rails", "#{RAILS}/Gemfile")
    run = assert_as_plain(<<~RUBY, env: bundle.environment)
      require "tmpdir"
      require "bundler/setup"
      $VERBOSE = nil
      Dir.mktmpdir do |directory|
        ENV["CULET_WORKLOAD_DIR"] = directory
        ENV["CULET_SCALE"] = "0.05"
        require "#{RAILS}/application"
        puts Blog.routes.routes.size, Post.count, Rails.application.eager_load!.class
      end
    RUBY
    assert_operator run.features.size, :>, 900
    assert_operator run.figures["found"], :>, 500
  end

  def test_rubocop
    skip "slow; CULET_TEST_ALL=1 runs it" unless all_tests?
    bundle = gems("rubocop", File.join(__dir__, "rubocop/Gemfile"))
    run = assert_as_plain(<<~'RUBY', env: bundle.environment)
      require "bundler/setup"
      $VERBOSE = nil
      require "rubocop"
      File.write("checked.rb", "def it(a)\n    a+1\nend\n")
      puts RuboCop::CLI.new.run(%w[--cache false --format simple --force-default-config checked.rb])
      File.unlink("checked.rb")
    RUBY
    assert_operator run.features.size, :>, 900
  end

  private

  def gems(name, gemfile)
    found = Culet::Compare::Bundle.new(name: name, gemfile: gemfile)
    skip "the gems of #{name} are not installed yet; CULET_TEST_ALL=1 installs them" unless found.installed? || all_tests?
    found.install(log: $stderr)
    found
  rescue Culet::Benchmark::Exclusion => e
    skip "#{e.message}; #{e.remedy}"
  end
end
