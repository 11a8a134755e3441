# frozen_string_literal: true

require "rbconfig"

# Of Debian's package redmine-sqlite.
module Database
  FOLDER = "/usr/share/redmine"
  # Debian's command line has these for each instance.
  ENVIRONMENT = { "RAILS_ENV" => "production", "X_DEBIAN_SITEID" => "default" }.freeze

  # Fills it, once.
  def self.fill
    filled = system(ENVIRONMENT, RbConfig.ruby, "-e", 'require "./config/environment"; load ARGV.first',
                    File.expand_path("seed.rb", __dir__), chdir: FOLDER, out: :err)
    raise Culet::Error, "Redmine could not be filled; is this the root of bench/redmine/run?" unless filled
  end
end
