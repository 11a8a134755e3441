# frozen_string_literal: true

# Jobs of Sidekiq for bench/explain/predictions: most build a page of texts, every fiftieth an export. Nothing is kept.
# PREDICTION_LINES: a file of lines that an initializer would have.
require "json"
require "sidekiq"
load ENV["PREDICTION_LINES"] if ENV.key?("PREDICTION_LINES")

class PageJob
  include Sidekiq::Job

  EXPORT_EVERY = 50
  EXPORT_ROWS = 20_000
  PAGE_ROWS = 200

  def perform(number)
    rows = (number % EXPORT_EVERY).zero? ? EXPORT_ROWS : PAGE_ROWS
    JSON.generate(Array.new(rows) { |id| { id: id, title: "row #{id}", body: "text of row #{id}, " * (id % 30) } }).size
  end
end
