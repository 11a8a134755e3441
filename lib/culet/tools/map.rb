# frozen_string_literal: true

require_relative "../scope"
require_relative "map/model"
require_relative "map/totals"

module Culet
  # The picture of a snapshot: every page of memory as a cell, in address order.
  #
  #   PageStates   the state of every page, whichever mapping it lies in
  #   Spans        which addresses are shown: malloc's regions, and what else of the mappings is in memory
  #   Groups       spans put together: Ruby's pages, one group for each arena, the other mappings by their use
  #   Model        groups in rows of cells, and what each cell is
  #   Totals       the figures beside the picture, and in --json
  #   Palette      the colours and what they mean
  #   Html, Png    the two pictures of a Model; loaded when asked for
  module Map
  end
end
