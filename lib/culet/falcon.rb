# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/falcon")

module Culet
  # `require "culet/falcon"` and `use Culet::Falcon` in config.ru, above the application: with CULET_LIMIT, or
  # culet/limit loaded before, the workers keep the memory limit (see Limit::Falcon). With CULET_BLACKBOX, requests have
  # labels. On other servers the requests have labels, and nothing else changes.
  #
  # The workers end one at a time if they are forked from a process that has loaded culet/limit: by falcon.rb, or by
  # `falcon serve --preload`.
  module Falcon
    # @param application [#call] a Rack application
    # @return [#call] the application in culet's middleware
    def self.new(application)
      require_relative "blackbox" if ENV["CULET_BLACKBOX"]
      require_relative "limit" if ENV.fetch("CULET_LIMIT", "off") != "off"
      application = Profile::Rack.new(application) if defined?(BlackBox.running?) && BlackBox.running?
      return application unless defined?(::Falcon::Server) && defined?(Limit::Monitor)

      require_relative "runtime/limit/falcon"
      Limit::Falcon.new(application)
    end
  end
end
