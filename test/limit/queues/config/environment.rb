# frozen_string_literal: true

# A Rails application of one file, whose jobs write a line at their begin and one at their end in the file JOURNAL.
# ADAPTER: solid_queue or good_job; FOLDER: for what it writes; BYTES: what a process keeps of each job; INTERVAL between
# restarts.
ADAPTER = ENV.fetch("ADAPTER")

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_controller/railtie" if ADAPTER == "good_job"
require ADAPTER
require "culet"

class Application < Rails::Application
  config.root = File.expand_path("..", __dir__)
  config.paths["config/database"] = File.join(ENV.fetch("FOLDER"), "database.yml")
  config.paths["log"] = File.join(ENV.fetch("FOLDER"), "log")
  config.load_defaults("#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}")
  config.eager_load = false
  config.secret_key_base = "for a test"
  config.active_job.queue_adapter = ADAPTER.to_sym
  config.logger = ActiveSupport::Logger.new($stderr)
  config.log_level = :warn
  config.culet.limit = true
end

# A job.
class LineJob < ActiveJob::Base
  KEPT = [] # rubocop:disable Style/MutableConstant

  def perform(number)
    write("begin #{number}")
    KEPT << ("x" * Integer(ENV.fetch("BYTES")))
    sleep 0.05
    write("end #{number}")
  end

  private

  def write(line) = File.write(ENV.fetch("JOURNAL"), "#{line}\n", mode: "a")
end

Application.initialize!
Culet::Limit.restart_interval = Float(ENV.fetch("INTERVAL"))
