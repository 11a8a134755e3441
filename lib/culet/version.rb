# frozen_string_literal: true

module Culet
  # The version of the gem.
  VERSION = "0.1.0"

  # Where the project is published: a reserved name until it is.
  HOMEPAGE = "https://culet.example"
end
