# frozen_string_literal: true

# What Sidekiq runs in the tests. FIGURES: a file that tells how the server process is, five times a second.
# BEAT_SECONDS: between two heartbeats, where ten are too many to wait for.

require "sidekiq"
require "culet/sidekiq"
require "json"

# Leaves garbage that no collection has seen yet, with a little that stays in between.
class WasteJob
  include Sidekiq::Job

  STRINGS = 30_000
  BYTES = 1_000 # too long to be embedded in an object, on any Ruby
  KEPT = []
  ENDS = Queue.new

  def perform
    texts = Array.new(STRINGS) { "x" * BYTES }
    KEPT.replace(texts.each_slice(250).map(&:first))
    texts.clear
    ENDS << Figures.now
  end
end

class Figures
  def self.now
    { majors: GC.stat(:major_gc_count), returned_bytes: Culet.trim_stats[:returned_bytes] }
  end

  # What is, how many jobs have ended, and what was when the last of them did.
  def self.write(file)
    loop do
      @last = WasteJob::ENDS.pop(true)
      @ended = @ended.to_i + 1
    rescue ThreadError
      break # that were all
    end
    File.write("#{file}.new", JSON.generate(now: now, jobs: @ended.to_i, after_jobs: @last, active: Culet.trim_stats[:active]))
    File.rename("#{file}.new", file)
  end
end

if ENV.key?("BEAT_SECONDS") && defined?(Sidekiq::Launcher)
  Sidekiq::Launcher.send(:remove_const, :BEAT_PAUSE)
  Sidekiq::Launcher.const_set(:BEAT_PAUSE, Float(ENV.fetch("BEAT_SECONDS")))
end

Sidekiq.configure_server do |config|
  config.on(:startup) do
    Thread.new do
      loop do
        Figures.write(ENV.fetch("FIGURES"))
        sleep 0.2
      end
    end
  end
end
