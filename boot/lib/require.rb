# frozen_string_literal: true

require_relative "extension"

Culet::Boot.native?

module Culet
  # `require "culet/require"` makes `require`, `load` and $LOAD_PATH.resolve_feature_path look a file up in an index of
  # the load path (Culet::FeatureIndex) instead of trying every folder. Ruby searches what the index cannot decide.
  #
  # CULET_REQUIRE: "on" (default), "off", or "index", which leaves real paths to the C library. CULET_REQUIRE_CACHE: the
  # folder of the index, by default ${XDG_CACHE_HOME:-~/.cache}/culet/require.
  #
  # The extension defines Require.prepare and Require.take_over, and Require.figures: a Hash with the size of the index
  # and the results of the lookups.
  module Require
    WORDS = %w[on index off].freeze
    REPLACED = %i[require load].freeze
    private_constant :WORDS, :REPLACED

    # @api private
    # @param environment [#[]] with the settings
    # @return [String, nil] a warning
    def self.begin(environment)
      word = environment["CULET_REQUIRE"].to_s
      word = "on" if word.empty?
      unless WORDS.include?(word)
        return "CULET_REQUIRE: '#{word}' is not one of #{WORDS.join(", ")}; require is unchanged"
      end
      return if word == "off"
      return "require is unchanged: #{Boot.missing_reason}" unless Boot.native?
      # Each box has a load path and features of its own.
      return "require is unchanged: this Ruby runs in boxes" if defined?(Ruby::Box) && Ruby::Box.enabled?

      prepare(file(environment), denies?, word == "on", ruby_files_first?)
      replace
      folder = environment["CULET_REQUIRE_CACHE"].to_s
      "CULET_REQUIRE_CACHE is not an absolute path; the index is not saved" unless folder.empty? || folder.start_with?("/")
    end

    # @api private
    # @param environment [#[]] with the settings
    # @return [String, nil] path of the index; nil without a home directory
    def self.file(environment)
      folder = environment["CULET_REQUIRE_CACHE"].to_s
      folder = default_folder(environment).to_s if folder.empty?
      return unless folder.start_with?("/")

      File.join(folder, "#{RUBY_ENGINE}-#{RUBY_VERSION[/\A\d+\.\d+/]}-#{RUBY_PLATFORM}.index")
    end

    def self.default_folder(environment)
      cache = environment["XDG_CACHE_HOME"].to_s
      return File.join(cache, "culet", "require") if cache.start_with?("/")

      home = environment["HOME"].to_s
      File.join(home, ".cache", "culet", "require") if home.start_with?("/")
    end

    # Whether a feature that no folder has does not exist: not if extensions are linked into Ruby. RubyGems has loaded
    # RbConfig; without RubyGems it is not worth loading.
    def self.denies? = defined?(RbConfig) == "constant" && RbConfig::CONFIG["EXTSTATIC"].to_s.empty?

    # The folders have a culet_search_order.so and a culet_search_order.rb, neither of which is loaded.
    #
    # @return [Boolean] whether this Ruby prefers x.rb in a later folder of the load path to x.so in an earlier one
    def self.ruby_files_first?
      folders = %w[native ruby].map { |name| File.join(__dir__, "search_order", name) }
      $LOAD_PATH.push(*folders)
      $LOAD_PATH.resolve_feature_path("culet_search_order")&.first == :rb
    ensure
      $LOAD_PATH.pop(2)
    end

    # Replaces Ruby's functions under all their names: RubyGems renames `require` to gem_original_require, Bundler
    # copies it back, other wrappers have their own names.
    def self.replace
      [::Kernel, ::Kernel.singleton_class].each do |place|
        { private: place.private_instance_methods(false),
          public: place.public_instance_methods(false) }.each do |visibility, names|
          names.each do |name|
            original = rubys_own(place, name) or next

            take_over(place, name, original)
            place.send(visibility, name)
          end
        end
      end
    end

    # @return [Symbol, nil] the original name if the method is one of Ruby's functions
    def self.rubys_own(place, name)
      method = place.instance_method(name)
      # A prepended method calls it.
      method = method.super_method while method && method.owner != place
      method.original_name if method && REPLACED.include?(method.original_name) && method.source_location.nil?
    end

    private_class_method :default_folder, :denies?, :ruby_files_first?, :replace, :rubys_own

    unless respond_to?(:figures)
      # @return [Hash] empty without the index
      def self.figures = {}
    end

    problem = self.begin(ENV)
    Native.warn(problem) if problem
  end
end
