# frozen_string_literal: true

module ProfileBench
  # culet with or without the profile.
  class Contender < Bench::Contender
    OFF = "off"
    # With the extension and the agent, which do not sample.
    LOADED = "loaded, off"
    # In the order of the tables.
    ALL = [OFF, LOADED, "512k", "64k"].freeze
    # For programs without Ruby.
    NATIVE = (ALL - [LOADED]).freeze

    attr_reader :name

    # @param name [String] OFF, LOADED or a value of CULET_PROFILE
    def initialize(name)
      super("culet")
      @name = name
    end

    def environment = super.merge(settings)

    # @return [Hash{String => String}] for a Ruby program: the profile needs its extension
    def ruby_environment = name == OFF ? environment : environment.merge("RUBYOPT" => ruby_options)

    private

    def settings = [OFF, LOADED].include?(name) ? {} : { "CULET_PROFILE" => name }

    def ruby_options = "-I#{Bench::ROOT}/lib -rculet/profile"
  end
end
