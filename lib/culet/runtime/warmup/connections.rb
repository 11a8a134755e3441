# frozen_string_literal: true

module Culet
  module Warmup
    # Closes connections that children must not inherit: those of Active Record. Other libraries' connections must be
    # closed in a hook of the server.
    module Connections
      # From this version on, clear_all_connections! needs :all to clear the connections of all roles.
      ALL_ROLES_SINCE = "7.1"
      private_constant :ALL_ROLES_SINCE

      # @return [true, nil] nil without Active Record
      def self.close
        return unless defined?(::ActiveRecord::Base)

        handler = ::ActiveRecord::Base.connection_handler
        all_roles? ? handler.clear_all_connections!(:all) : handler.clear_all_connections!
        true
      end

      def self.all_roles? = ::ActiveRecord.gem_version >= Gem::Version.new(ALL_ROLES_SINCE)
      private_class_method :all_roles?
    end
  end
end
