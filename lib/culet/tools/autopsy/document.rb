# frozen_string_literal: true

require "time"
require_relative "../../model/profile"
require_relative "findings"

module Culet
  module Autopsy
    # Findings as one JSON object.
    class Document
      def initialize(findings)
        @findings = findings
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        { "file" => box.path, "pid" => box.pid, "parent_pid" => box.parent_pid, "program" => box.program,
          "ruby" => box["ruby"], "culet" => box["culet"], "allocator" => box["allocator"],
          "started_at" => time(box.started_at), "last_at" => time(box.last_at), "cause" => cause,
          "limit_bytes" => @findings.limit_bytes, "used_bytes" => @findings.used_bytes,
          "rss_bytes" => @findings.reading&.resident_bytes,
          "levels" => @findings.reading&.levels.to_h,
          "gc" => gc, "profile" => profile, "retained" => look, "running" => @findings.running.map { |one| event(one) },
          "finished" => @findings.finished.map { |one| event(one) }, "notes" => box.notes.map { |one| note(one) },
          "history" => box.readings.map { |one| moment(one) } }
      end

      private

      def box = @findings.box

      def time(value) = value&.utc&.iso8601(3)

      def cause
        one = @findings.cause
        { "kind" => one.kind, "certain" => one.certain, "text" => one.text, "signal" => one.signal,
          "group_kills" => one.kills }
      end

      def gc
        reading = @findings.reading or return {}
        { "count" => reading.collections, "major" => reading.major_gcs, "live_slots" => reading.live_slots,
          "slots" => reading.slots, "allocated_objects" => reading.allocated_objects,
          "malloc_increase_bytes" => reading.malloc_increase_bytes,
          "oldmalloc_increase_bytes" => reading.oldmalloc_increase_bytes }
      end

      def profile
        data = @findings.profile or return
        { "sample_bytes" => data.sample_bytes, "taken_at" => time(data.recordings.first.taken_at),
          "total_bytes" => @findings.profiled_bytes&.round,
          "lines" => @findings.lines.map { |row| { "name" => row.name, "bytes" => row.bytes.round } },
          "sites" => Culet::Profile::Document.new(data).to_h["sites"] }
      end

      def look
        one = box.look or return
        { "at" => time(one.at), "total_bytes" => one.total_bytes, "growth_bytes" => one.growth_bytes,
          "seconds" => one.seconds, "holders" => one.holders.map { |holder| holder.to_h.transform_keys(&:to_s) } }
      end

      def event(one)
        { "label" => one.label, "started_at" => time(one.started_at), "ended_at" => time(one.ended_at),
          "age_seconds" => (one.ended_at || box.last_at) - one.started_at, "growth_bytes" => one.growth_bytes,
          "objects" => one.objects }
      end

      def note(one) = { "at" => time(one.at), "kind" => one.kind, "text" => one.text, "bytes" => one.bytes }

      def moment(one)
        { "at" => time(one.at), "rss_bytes" => one.resident_bytes, "used_bytes" => one.group_used_bytes,
          "malloc_bytes" => one.malloc_used_bytes, "profiled_bytes" => one.profile_bytes, "running" => one.running }
      end
    end
  end
end
