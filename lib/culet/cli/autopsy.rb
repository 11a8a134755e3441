# frozen_string_literal: true

require_relative "command"
require_relative "../runtime/blackbox/folder"
require_relative "../system/ruby_options"
require_relative "../tools/autopsy"

module Culet
  module CLI
    # `culet autopsy`: what a process held that was killed.
    class Autopsy < Command
      BANNER = "culet autopsy FILE|DIR ... | --kernel"
      EXAMPLES = ["CULET_BLACKBOX=boxes #{RubyOptions.advice("auto")} puma    keep black boxes",
                  "culet autopsy boxes            the process that ended last",
                  "culet autopsy boxes --all      all of them",
                  "culet autopsy boxes/culet-4242-0123456789ab.blackbox --json",
                  "culet autopsy --kernel                which processes the kernel has killed"].freeze

      private

      def execute(words, *)
        return kernel(words) if options[:kernel]
        raise UsageError, "give a file of a black box, or the folder of CULET_BLACKBOX" if words.empty?

        log = Culet::Autopsy::KernelLog.read
        findings = paths(words).map { |path| find(path, log) }
        deliver(options[:json] ? json(findings) : fitted { findings.map { |one| table(one) }.join("\n") })
        EXIT_OK
      end

      def define(parser)
        paragraph(parser, "Reports the end of a process with a black box (CULET_BLACKBOX): the cause, the levels of " \
                          "memory, the largest sites of the memory profile, the last requests and jobs.")
        option(parser, "--all", "of a folder, all files of ended processes (default: the latest)")
        option(parser, "--kernel", "the kills in the kernel's log, and the counts of this control group")
      end

      def paths(words) = words.flat_map { |word| File.directory?(word) ? in_folder(word) : [word] }

      def in_folder(path)
        files = BlackBox::Folder.new(path).files.select { |file| BlackBox::Folder.unlocked?(file) }
        raise Error, "#{path} has no black box of an ended process" if files.empty?

        options[:all] ? files : files.first(1)
      rescue SystemCallError => e
        raise Error, "cannot read #{path}: #{Error.reason(e)}"
      end

      def find(path, log)
        box = Culet::Autopsy::Box.load(path)
        Culet::Autopsy::Findings.new(box, alive: !BlackBox::Folder.unlocked?(path), log: log)
      end

      def json(findings)
        documents = findings.map { |one| Culet::Autopsy::Document.new(one).to_h }
        JSON.generate(options[:all] || documents.size > 1 ? { "autopsies" => documents } : documents.first)
      end

      def table(findings) = Culet::Autopsy::Table.new(findings, color: color?).to_s

      def kernel(words)
        raise UsageError, "--kernel takes no files" if words.any?

        report = Culet::Autopsy::KernelReport.new(Culet::Autopsy::KernelLog.read, color: color?)
        deliver(formatted(report) { report })
        EXIT_OK
      end
    end
  end
end
