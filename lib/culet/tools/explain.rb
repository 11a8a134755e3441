# frozen_string_literal: true

require_relative "../model/diagnosis"
require_relative "explain/document"
require_relative "explain/prediction_check"
require_relative "explain/table"
require_relative "explain/watch"

module Culet
  # Why processes are as large as they are, and what to do. The rules are in model/diagnosis.
  #
  #   Watch             reads a process tree for a while
  #   Table, Document   the diagnosis for a terminal, as JSON
  #   Html              the page, with the levels over time
  #   PredictionCheck   compares what was predicted with what came
  module Explain
    autoload :Html, File.expand_path("explain/page", __dir__)
  end
end
