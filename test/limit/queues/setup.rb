# frozen_string_literal: true

# Makes the tables of the queue, and enqueues JOBS jobs.
require_relative "config/environment"

gem = Gem.loaded_specs.fetch(ADAPTER).full_gem_path
ActiveRecord::Migration.verbose = false
case ADAPTER
when "solid_queue"
  load File.join(gem, "lib/generators/solid_queue/install/templates/db/queue_schema.rb")
when "good_job"
  template = File.read(File.join(gem, "lib/generators/good_job/templates/install/migrations/create_good_jobs.rb.erb"))
  migration = template.gsub("<%= migration_version %>", "[#{ActiveRecord::Migration.current_version}]")
  eval(migration) # rubocop:disable Security/Eval
  CreateGoodJobs.migrate(:up)
end
ActiveJob.perform_all_later(Array.new(Integer(ENV.fetch("JOBS"))) { |number| LineJob.new(number) })
