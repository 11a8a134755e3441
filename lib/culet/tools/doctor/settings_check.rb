# frozen_string_literal: true

require_relative "finding"
require_relative "../../runtime/blackbox/settings"
require_relative "../../runtime/limit/settings"
require_relative "../../runtime/profile/settings"
require_relative "../../runtime/trim/settings"

module Culet
  class Doctor
    # Values of culet's own variables that culet does not accept.
    class SettingsCheck < Check
      # @return [Array<Finding>]
      def findings
        [*refused, *malloc].map { |sentence| bad("settings", sentence, "Correct the variable, or unset it.") }
      end

      private

      def refused
        trim, limit, profile, *box = target.environment.values_at("CULET_TRIM", "CULET_LIMIT", "CULET_PROFILE",
                                                                  "CULET_BLACKBOX", "CULET_BLACKBOX_LOOKS")
        limited = Limit::Settings.new(limit).problem
        [*Trim::Settings.new(trim).problems, ("CULET_LIMIT: #{limited}" if limited),
         Profile::Settings.new(profile).problem, BlackBox::Settings.new(*box).problem].compact
      end

      def malloc
        return [] unless setup.culet?

        Allocators.definitions.find { |one| one.name == "culet" }.settings.each_value.filter_map do |setting|
          value = target.environment[setting.variable].to_s
          next if value.empty? || setting.accepts?(value)

          "#{setting.variable}: '#{value}' is not one of #{setting.expected}"
        end
      end
    end
  end
end
