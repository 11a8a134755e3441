# frozen_string_literal: true

require_relative "../scope"
require_relative "map/model"
require_relative "map/totals"

module Culet
  # The map of a snapshot: every page of memory is a cell, in address order.
  #
  #   PageStates   page states by address, across mappings
  #   Span         an address range on the map: malloc regions, and resident parts of other mappings
  #   Groups       spans by heading: Ruby pages, each arena, other mappings by use
  #   Model        groups laid out in rows of cells, with the state of each cell
  #   Totals       the figures beside the map and in --json
  #   Palette      kinds of cells and their colours
  #   Html, Png    the outputs of a Model, loaded on demand
  module Map
  end
end
