# frozen_string_literal: true

module Culet
  VERSION = "0.1.0"
end
