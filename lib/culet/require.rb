# frozen_string_literal: true

require_relative "../culet"

module Culet
  # From now on `require`, `load` and $LOAD_PATH.resolve_feature_path ask an index of the load path first, see
  # Culet::FeatureIndex: a file is found without a try in each folder of the load path. What the index is not sure of, Ruby
  # searches as ever.
  #
  # CULET_REQUIRE says otherwise: "off": nothing is changed; "index": real paths are left to the C library. CULET_REQUIRE_CACHE
  # is the folder that the index is kept in, by default ${XDG_CACHE_HOME:-~/.cache}/culet/require.
  #
  # From the extension come Require.prepare and Require.take_over, which this uses, and Require.figures: a Hash of what
  # the index holds and what came of the calls so far, see ext/culet/feature_index/require.c.
  module Require
    WORDS = ["on", "index", "off"].freeze
    REPLACED = %i[require load].freeze
    private_constant :WORDS, :REPLACED

    # @param environment [#[]] where the settings are
    # @return [String, nil] what is to be told to whoever runs the program
    def self.begin(environment)
      word = environment["CULET_REQUIRE"].to_s
      word = "on" if word.empty?
      return "CULET_REQUIRE: '#{word}' is none of #{WORDS.join(", ")}; require stays as it was" unless WORDS.include?(word)
      return if word == "off"
      return "require stays as it was: #{Native.missing_reason("culet.so")}" unless Culet.native?
      return "require stays as it was: this Ruby does not let an extension call it" unless respond_to?(:prepare)
      # Each box has a load path and features of its own.
      return "require stays as it was: this Ruby runs in boxes" if defined?(Ruby::Box) && Ruby::Box.enabled?

      prepare(file(environment), denies?, word == "on")
      replace
      nil
    end

    # @return [String, nil] where the index is kept; nil where there is no home
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
    private_class_method :default_folder

    # Whether what no folder has can be nowhere: not where extensions are linked into Ruby itself. RubyGems has loaded
    # RbConfig; without RubyGems the question is not worth a file more.
    def self.denies? = defined?(RbConfig) == "constant" && RbConfig::CONFIG["EXTSTATIC"].to_s.empty?
    private_class_method :denies?

    # Wherever Ruby's own functions stand: RubyGems calls its `require` gem_original_require; Bundler copies it back to
    # `require`; what wraps it calls it by yet other names.
    def self.replace
      [::Kernel, ::Kernel.singleton_class].each do |place|
        { private: place.private_instance_methods(false), public: place.public_instance_methods(false) }.each do |visibility, names|
          names.each do |name|
            original = rubys_own(place, name) or next

            take_over(place, name, original)
            place.send(visibility, name)
          end
        end
      end
    end
    private_class_method :replace

    # @return [Symbol, nil] which of Ruby's functions that method is
    def self.rubys_own(place, name)
      method = place.instance_method(name)
      # What is prepended stands before it, and goes on calling it.
      method = method.super_method while method && method.owner != place
      method.original_name if method && REPLACED.include?(method.original_name) && method.source_location.nil?
    end
    private_class_method :rubys_own

    unless respond_to?(:figures)
      # @return [Hash] empty, as always where require stays as it was
      def self.figures = {}
    end

    problem = self.begin(ENV)
    warn("culet: #{problem}") if problem
  end
end
