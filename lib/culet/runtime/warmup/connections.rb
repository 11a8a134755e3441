# frozen_string_literal: true

module Culet
  module Warmup
    # What requests opened and no child may inherit: Active Record's connections, where it is loaded. Other libraries' are
    # theirs to close, in a hook of the server's.
    module Connections
      # Since then all roles' connections are cleared by that word, and no others without one.
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
