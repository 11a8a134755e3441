# frozen_string_literal: true

require_relative "../../system/kernel_file"

module Culet
  class Doctor
    # One line of the report. verdict: "ok", "note" (worth knowing) or "bad"; remedy: a sentence where bad, else nil
    # or what one might do.
    Finding = Struct.new(:topic, :verdict, :text, :remedy, keyword_init: true)

    # What the checks share.
    class Check
      # @param target [Target]
      def initialize(target)
        @target = target
      end

      private

      attr_reader :target

      def ok(topic, text) = Finding.new(topic: topic, verdict: "ok", text: text)

      def note(topic, text, remedy = nil) = Finding.new(topic: topic, verdict: "note", text: text, remedy: remedy)

      def bad(topic, text, remedy) = Finding.new(topic: topic, verdict: "bad", text: text, remedy: remedy)

      # What cannot be read is neither good nor bad.
      #
      # @param what [String] the subject, with its verb: "whether ... is"
      # @param why [String] what cannot be read
      def unknown(topic, what, why, remedy = nil) = note(topic, "#{what} unknown: #{why}", remedy)

      def content(path) = KernelFile.content(path)
    end
  end
end
