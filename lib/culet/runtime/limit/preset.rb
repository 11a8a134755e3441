# frozen_string_literal: true

module Culet
  # See culet/limit.
  module Limit
    class << self
      # The limit of a framework's configuration, set before culet/limit is loaded. CULET_LIMIT takes precedence.
      #
      # @api private
      # @return [Symbol, String, true, nil]
      attr_accessor :preset
    end
  end
end
