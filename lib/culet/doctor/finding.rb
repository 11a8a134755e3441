# frozen_string_literal: true

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

      # @return [String, nil] a small file's content; nil where this kernel or container has no such file
      def content(path)
        File.read(path).strip
      rescue Errno::ENOENT, Errno::ENOTDIR, Errno::EACCES
        nil
      end
    end
  end
end
