# frozen_string_literal: true

require "test_helper"
require "servers/rails/rails_helper"

# config.culet.profile in a real Rails.
class RailsLabelTest < Minitest::Test
  include RailsHelper

  APPLICATION = <<~'RUBY'
    require "action_controller/railtie"
    begin
      require "active_job/railtie"
    rescue LoadError
      # It is not in every bundle.
    end
    require "culet"

    # What the middleware above it said.
    Outer = Struct.new(:app) do
      def call(env)
        env["outer"] = Culet::Profile.labels["endpoint"] || "off"
        app.call(env)
      end
    end

    class Application < Rails::Application
      config.root = ENV.fetch("APPLICATION_ROOT")
      config.load_defaults("#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}")
      config.eager_load = true
      config.hosts.clear
      config.secret_key_base = "for a process that lives for a second"
      config.logger = ActiveSupport::Logger.new(File::NULL)
      config.culet.profile = ENV["PROFILE"] == "true"
      config.middleware.use(Outer)
      routes.append { get("/issues/:id", to: "issues#show") }
    end

    class IssuesController < ActionController::API
      def show = render(plain: Culet::Profile.respond_to?(:start) ? Culet::Profile.labels.inspect : "off")
    end

    if defined?(ActiveJob)
      class MailJob < ActiveJob::Base
        def perform = puts(Culet::Profile.respond_to?(:start) ? Culet::Profile.labels.inspect : "off")
      end
    end

    Application.initialize!
    %w[/issues/4 /missing/5 /issues/6 /missing/7].each do |path|
      status, _, body = Application.call(env = Rack::MockRequest.env_for(path))
      puts "#{status} #{env["outer"]}"
      body.each { |part| puts part } if status == 200
    end
    MailJob.perform_now if defined?(MailJob)
  RUBY

  # Once a route is known, the request has its name from the start.
  LABELLED = <<~TEXT
    200 GET /issues/:id
    {"endpoint"=>"issues#show"}
    404 GET /missing/:id
    200 issues#show
    {"endpoint"=>"issues#show"}
    404 other
  TEXT

  def test_requests_and_jobs_have_labels
    requests, job = parts(run_application("true"))
    assert_equal LABELLED, requests
    skip "Active Job is not in the bundle" if job.empty?
    assert_equal %({"job"=>"MailJob"}\n), job
  end

  def test_with_a_black_box_they_have_labels_too
    folder = new_folder
    requests, = parts(run_application("false", "CULET_BLACKBOX" => folder))
    assert_equal LABELLED, requests.gsub(/^off$/, %({"endpoint"=>"issues#show"}))
  end

  def test_nothing_is_loaded_otherwise
    requests, job = parts(run_application("false"))
    assert_equal "200 off\noff\n404 off\n200 off\noff\n404 off\n", requests
    assert_includes ["", "off\n"], job
  end

  private

  # What the requests printed, and what the job did.
  def parts(text) = text.lines.partition.with_index { |_, at| at < 6 }.map(&:join)

  def run_application(profile, more = {})
    Dir.mktmpdir do |root|
      File.write(File.join(root, "application.rb"), APPLICATION)
      env = bundle.environment.merge(TestHelper::NEUTRAL, "PROFILE" => profile, "APPLICATION_ROOT" => root, **more)
      out, = assert_success(RbConfig.ruby, "-rbundler/setup", "-I#{ROOT}/lib", "#{root}/application.rb", env: env)
      out
    end
  end
end
