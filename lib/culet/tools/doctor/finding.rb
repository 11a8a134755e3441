# frozen_string_literal: true

require_relative "../../model/remedies"
require_relative "../../system/kernel_file"

module Culet
  class Doctor
    # One line of the report. verdict: "ok", "note" or "bad"; remedy: what to do, always given with "bad".
    Finding = Struct.new(:topic, :verdict, :text, :remedy, keyword_init: true)

    # Base of the checks.
    class Check
      # @param target [Allocators::InspectedProcess]
      # @param subject [Integer, String] what `culet explain` is given in advice
      def initialize(target, subject)
        @target = target
        @subject = subject
      end

      private

      attr_reader :target, :subject

      # @return [Setup] what the process has in place
      def setup
        @setup ||= Setup.new(allocator: target.dormant? ? "glibc" : target.allocator,
                             paths: target.mappings.map { |one| one.path.to_s },
                             environment: (target.environment if target.environment_known?),
                             names: Processes::Identity.new(target.pid).names, ruby: target.ruby_version)
      end

      # @param names [Array<String>] of remedies that are alternatives
      # @return [String, nil] those that are not in place
      def advice(*names)
        text = Remedies.sentence(Remedies.new([setup]).list(*names))
        "#{text}; `culet explain #{subject}` says what it saves." if text
      end

      def ok(topic, text) = Finding.new(topic: topic, verdict: "ok", text: text)

      def note(topic, text, remedy = nil) = Finding.new(topic: topic, verdict: "note", text: text, remedy: remedy)

      def bad(topic, text, remedy) = Finding.new(topic: topic, verdict: "bad", text: text, remedy: remedy)

      # @param what [String] a noun
      # @param why [String] what cannot be read
      def unknown(topic, what, why, remedy = nil) = note(topic, "#{what}: unknown, because #{why}", remedy)

      # @param what [String] a noun
      def unopened(topic, what)
        unknown(topic, what, "#{target.unreadable.first} cannot be opened",
                "Run culet in the container of the process, or as root.")
      end

      def content(path) = KernelFile.content(path)
    end
  end
end
