# frozen_string_literal: true

require "test_helper"
require "servers/rails/rails_helper"

# config.culet.profile in a real Rails.
class RailsLabelTest < Minitest::Test
  include RailsHelper

  APPLICATION = <<~'RUBY'
    require "action_controller/railtie"
    require "active_job/railtie"
    require "culet"

    class Application < Rails::Application
      config.root = ENV.fetch("APPLICATION_ROOT")
      config.load_defaults("#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}")
      config.eager_load = true
      config.hosts.clear
      config.secret_key_base = "for a process that lives for a second"
      config.logger = ActiveSupport::Logger.new(File::NULL)
      config.culet.profile = ENV["PROFILE"] == "true"
      routes.append { get("/issues/:id", to: "issues#show") }
    end

    class IssuesController < ActionController::API
      def show = render(plain: defined?(Culet::Profile) ? Culet::Profile.labels.inspect : "off")
    end

    class MailJob < ActiveJob::Base
      def perform = puts(defined?(Culet::Profile) ? Culet::Profile.labels.inspect : "off")
    end

    Application.initialize!
    %w[/issues/4 /missing/5].each do |path|
      status, _, body = Application.call(Rack::MockRequest.env_for(path))
      puts status
      body.each { |part| puts part } if status == 200
    end
    MailJob.perform_now
  RUBY

  def test_requests_and_jobs_have_labels
    assert_equal %(200\n{"endpoint"=>"issues#show"}\n404\n{"job"=>"MailJob"}\n), run_application("true")
  end

  def test_nothing_is_loaded_otherwise
    assert_equal "200\noff\n404\noff\n", run_application("false")
  end

  private

  def run_application(profile)
    Dir.mktmpdir do |root|
      File.write(File.join(root, "application.rb"), APPLICATION)
      env = bundle.environment.merge(TestHelper::NEUTRAL, "PROFILE" => profile, "APPLICATION_ROOT" => root)
      out, err, status = run_program(RbConfig.ruby, "-rbundler/setup", "-I#{ROOT}/lib", "#{root}/application.rb", env: env)
      assert_predicate status, :success?, err
      out
    end
  end
end
