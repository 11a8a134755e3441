# frozen_string_literal: true

require_relative "live/history"
require_relative "live/page"
require_relative "live/recorder"

module Culet
  # The page and the recordings of `culet live`: the moments of Sampler (lib/culet/model), second by second.
  #
  #   State, MergePatch                a moment as a document; what changed
  #   Ticker, Encoder, History         takes moments in time; makes frames of them, and keeps the last for pages
  #   Recorder, Recording              frames in a file, written and read
  #   Server, Client                   the page's server
  #   Page                             the page itself
  module Live
  end
end
