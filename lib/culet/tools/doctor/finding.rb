# frozen_string_literal: true

require_relative "../../system/kernel_file"

module Culet
  class Doctor
    # One line of the report. verdict: "ok", "note" or "bad"; remedy: what to do, always given with "bad".
    Finding = Struct.new(:topic, :verdict, :text, :remedy, keyword_init: true)

    # Base of the checks.
    class Check
      # @param target [Allocators::InspectedProcess]
      def initialize(target)
        @target = target
      end

      private

      attr_reader :target

      def ok(topic, text) = Finding.new(topic: topic, verdict: "ok", text: text)

      def note(topic, text, remedy = nil) = Finding.new(topic: topic, verdict: "note", text: text, remedy: remedy)

      def bad(topic, text, remedy) = Finding.new(topic: topic, verdict: "bad", text: text, remedy: remedy)

      # @param what [String] a noun
      # @param why [String] what cannot be read
      def unknown(topic, what, why, remedy = nil) = note(topic, "#{what}: unknown, because #{why}", remedy)

      def content(path) = KernelFile.content(path)
    end
  end
end
