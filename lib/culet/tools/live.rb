# frozen_string_literal: true

require_relative "live/history"
require_relative "live/page"
require_relative "live/recorder"

module Culet
  # The memory of process trees, second by second: what `culet live` serves and records, and `culet top` reads.
  #
  #   Sampler, Tree, Member, Events    moments of the processes
  #   State, MergePatch, Encoder       a moment as a document, and as a frame of what changed
  #   Watch, History                   takes moments in time; keeps the last of them for pages
  #   Recorder, Recording              frames in a file, written and read
  #   Server, Client, EventStream      the page's server
  #   Page                             the page itself
  module Live
  end
end
