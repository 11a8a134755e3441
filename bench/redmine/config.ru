# frozen_string_literal: true

# Redmine, with its pages in turn at the address /measured. The header x-worker has the pid of the answering process.

require "/usr/share/redmine/config/environment"
require_relative "rotation"

# As many connections as the server has threads; the package's configuration names none, which means five.
THREADS = 8
ActiveRecord::Base.establish_connection(ActiveRecord::Base.connection_db_config.configuration_hash.merge(pool: THREADS))

use Rotation
run Rails.application
