# frozen_string_literal: true

require_relative "../../model/collector_limits"
require_relative "../../system/agent/endpoint"
require_relative "../../text/lines"
require_relative "finding"

module Culet
  class Doctor
    # The settings of a Ruby's collector, and what the program has made of its limits so far, if it has the agent.
    class CollectorCheck < Check
      TOPIC = "collector"
      private_constant :TOPIC

      # @return [Array<Finding>] none for a program other than Ruby
      def findings
        return [] unless setup.collector.version
        return [note(TOPIC, "settings: unknown, because the title of the process overwrote its environment"), *limits] \
          unless target.environment_known?

        found = [*set, *ineffective, *limits]
        found.empty? ? [ok(TOPIC, "no variable changes the collector")] : found
      end

      private

      def settings = setup.collector.list

      # Those that this Ruby obeys.
      def set
        read = settings.select { |one| %i[effective default].include?(one.state) }
        return [] if read.empty?

        text = read.map { |one| "#{one.name}=#{one.text}#{" (default: #{one.default})" if one.default}" }.join(", ")
        kept = setup.collector.keeping
        return [ok(TOPIC, text)] if kept.empty?

        [note(TOPIC, "#{text}; #{Text::Lines.list(kept)} make#{"s" if kept.one?} Ruby keep more memory",
              advice("collector"))]
      end

      def ineffective
        settings.filter_map do |one|
          case one.state
          when :invalid then bad(TOPIC, "#{one.name}=#{one.text} is ignored: the value is out of range, or no number",
                                 "Correct it, or unset it; the default is #{one.default}.")
          when :removed then bad(TOPIC, "#{one.name} is ignored by Ruby #{target.ruby_version}", instead(one))
          when :unknown then note(TOPIC, "#{one.name} is no variable of Ruby #{target.ruby_version}", "Unset it.")
          end
        end
      end

      def instead(setting) = setting.instead ? "Set #{setting.instead}, or unset it." : "Unset it."

      def limits
        found = asked or return []

        [*stopped(found), boot(found)]
      end

      def asked
        CollectorLimits.ask(target.pid, settings: setup.collector) if Agent::Endpoint.new(target.live).listens?
      end

      def boot(found)
        return ok(TOPIC, found.sentence) unless found.inflated?(resident_bytes)

        note(TOPIC, "#{found.sentence}: the program has made its limits large, and garbage may reach them",
             advice(*found.remedies))
      end

      def stopped(found) = found.switches.map { |text| note(TOPIC, text) }

      def resident_bytes = target.status["VmRSS"].to_i << 10
    end
  end
end
