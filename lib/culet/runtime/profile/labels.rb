# frozen_string_literal: true

module Culet
  # Labels by one line each: `use Culet::Profile::Rack` (rack.rb), `config.culet.profile = true` in Rails (rails.rb),
  # `include Culet::Profile::ActiveJob`, `chain.add Culet::Profile::Sidekiq`.
  module Profile
    { Rack: "rack", Rails: "rails", ActiveJob: "active_job", Sidekiq: "sidekiq" }.each do |constant, file|
      autoload constant, File.expand_path(file, __dir__)
    end

    unless Culet.native?
      # @return [Object] the block's value
      def self.label(**) = yield

      # @return [Hash] always empty
      def self.labels = {}
    end
  end
end
