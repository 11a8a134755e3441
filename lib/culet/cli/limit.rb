# frozen_string_literal: true

require_relative "command"
require_relative "process_arguments"
require_relative "../model/limit/inquiry"
require_relative "../tools/limit/table"

module Culet
  module CLI
    # `culet limit`: the memory limit of a process.
    class Limit < Command
      include ProcessArguments

      BANNER = "culet limit [PID|NAME]"
      EXAMPLES = ["culet limit                 programs started from this shell",
                  "culet limit 4242            a running process",
                  "culet limit puma --json     a process by name"].freeze

      private

      def execute(words, *)
        if words.size > 1
          raise UsageError, "`culet limit` takes at most one process number or name; see `culet limit --help`"
        end

        inquiry = Culet::Limit::Inquiry.new(words.empty? ? ::Process.pid : one_named(words.first, files: false))
        document = inquiry.call
        deliver(formatted({ **document, "problems" => inquiry.problems }) { table(document, inquiry) })
        EXIT_OK
      end

      def define(parser)
        paragraph(parser, "Prints the kernel's memory limit, the memory that counts as used before the kernel kills " \
                          "a process, and the steps that culet/limit has taken in the process.")
        define_names(parser)
      end

      def table(document, inquiry)
        title = Processes::Identity.new(inquiry.pid).title
        Culet::Limit::Table.new(document, problems: inquiry.problems, title: title, color: color?)
      end
    end
  end
end
