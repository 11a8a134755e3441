# frozen_string_literal: true

require_relative "../../culet"
require_relative "../model/retention/analysis"
require_relative "../model/retention/gems"
require_relative "../model/retention/growth"
require_relative "retain/document"
require_relative "retain/growth_table"
require_relative "retain/table"

module Culet
  # `culet retain`: tables and pages of retention. The facts are in model/retention.
  #
  #   Table, GrowthTable     reports for a terminal
  #   Document               the reports as JSON
  #   Html                   a page with a flame graph
  module Retain
    autoload :Html, File.expand_path("retain/page", __dir__)
    autoload :PageData, File.expand_path("retain/page_data", __dir__)
  end
end
