# frozen_string_literal: true

require "servers/rails/rails_helper"

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

  def test_without_rails_there_is_no_railtie
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-rculet", "-e", "p defined?(Culet::Railtie)", env: NEUTRAL)
    assert status.success?, err
    assert_equal ["nil\n", ""], [out, err]
  end

  private

  # @param configured [Boolean, nil] what the application's configuration says; nil: nothing
  # @param initializer [String, nil] of the application, a file in config/initializers
  # @return [String] what the application said
  def boot(configured: nil, initializer: nil)
    Dir.mktmpdir do |directory|
      if initializer
        FileUtils.mkdir_p("#{directory}/config/initializers")
        File.write("#{directory}/config/initializers/culet.rb", initializer)
      end
      out, err, status = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rbundler/setup", APPLICATION, chdir: directory,
                                     env: NEUTRAL.merge(bundle.environment, "APPLICATION_ROOT" => directory, "CULET_TRIM" => nil,
                                                                                "CONFIGURED" => configured&.to_s))
      assert status.success?, err
      assert_empty err
      out
    end
  end
end
