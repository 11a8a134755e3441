# frozen_string_literal: true

module Culet
  # See culet/limit.
  module Limit
    class << self
      # What a framework's configuration says, to be set before culet/limit is loaded. CULET_LIMIT comes before it.
      #
      # @api private
      # @return [Symbol, String, true, nil]
      attr_accessor :preset
    end
  end
end
