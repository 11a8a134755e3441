# frozen_string_literal: true

require_relative "../model/sampler"
require_relative "top/page"

module Culet
  # The live view of process trees on a terminal.
  #
  # @api private
  module Top
    # @param sampler [#call] returns a moment; nil when all processes have ended
    # @param every [Numeric] seconds between the two readings that rates are made of
    # @return [Hash, nil] a moment; nil when all processes have ended
    def self.moment(sampler, every:)
      return unless sampler.call

      sleep(every)
      sampler.call
    end
  end
end
