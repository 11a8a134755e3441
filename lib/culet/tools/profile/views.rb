# frozen_string_literal: true

module Culet
  module Profile
    # The views of a profile, by the letter of the stream.
    LETTERS = { "a" => :allocated, "l" => :live, "p" => :peak, "g" => :growth, "i" => :inherited }.freeze
    private_constant :LETTERS

    # Views that a report can show.
    VIEWS = %w[live allocated peak growth].freeze

    # What the bytes of a view can be added up by.
    KINDS = %w[line method file gem class library label].freeze
  end
end
