# frozen_string_literal: true

require_relative "numbers"
require_relative "../model/agent/inquiry"

module Culet
  module CLI
    # Options of the counts of Ruby objects, which the agent in a process makes; for `culet snapshot --objects`.
    module ObjectCounts
      private

      def define_objects(parser)
        option(parser, "--objects", "count the Ruby objects too; the process has to carry culet/agent")
        option(parser, "--wait TIME", "with --objects: wait this long for the main thread (default: 10s)") do |v|
          bounded("--wait", v)
        end
        option(parser, "--limit TIME", "with --objects: stop counting after TIME, which leaves the counts incomplete " \
                                       "(default: 10s); Ruby is paused while it counts") { |v| bounded("--limit", v) }
        option(parser, "--[no-]data", "with --objects: include the sizes of C extension objects (default: yes); " \
                                      "a faulty extension can crash here")
      end

      def check_objects
        needless = { wait: "--wait", limit: "--limit", data: "--data" }.find { |name, _| options.key?(name) }
        raise UsageError, "#{needless.last} needs --objects" if needless && !options[:objects]
        raise UsageError, "--objects counts once; leave out --every" if options[:objects] && options[:every]
      end

      def counted(pid)
        limit = options.fetch(:limit, Culet::Agent::Records::LIMIT_SECONDS)
        Culet::Agent::Inquiry.new(pid, data: options.fetch(:data, true), limit_seconds: limit,
                                       wait_seconds: options.fetch(:wait, 10.0)).call
      end

      # @param objects [Hash] of the agent's answer
      def counting(objects)
        return "it has no object counts: #{objects["why"]}" unless objects["why"].empty?

        number = Text::Numbers.count(objects["count"], "object")
        text = format("#{number} counted in %.1f ms", 1000 * objects["seconds"])
        objects["complete"] ? text : "#{text}; incomplete, because the time limit was reached"
      end
    end
  end
end
