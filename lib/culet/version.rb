# frozen_string_literal: true

module Culet
  # The version of the gem.
  VERSION = "0.1.0"

  # The address of the project, on a reserved domain until the project is published.
  HOMEPAGE = "https://culet.example"
end
