# frozen_string_literal: true

require_relative "errors"

module Culet
  # Where the compiled files are, and why they are missing where they are.
  # A checkout has them under allocator/build and lib/culet; an installed gem
  # has them in its extension directory.
  module Native
    # Written by the gem's build beside the compiled files, one line "FILE: reason" for each that it could not make.
    MISSING_RECORD = "native_missing.txt"

    module_function

    # Loads the extension if it is there. What is wrong otherwise, `missing_reason` tells.
    def load
      path = find("culet.so")
      @loaded = path ? require(path) || true : false
    rescue LoadError => e
      @loaded = false
      @load_error = e.message
    end

    # @return [Boolean]
    def loaded? = @loaded == true

    # @param file [String] "libculet.so" or "culet.so"
    # @return [String, nil] its absolute path
    def find(file)
      directories.each do |directory|
        path = File.join(directory, file)
        return File.expand_path(path) if File.file?(path)
      end
      nil
    end

    # @param file [String] as for `find`
    # @return [String] one sentence: what the build lacked, or how to build
    def missing_reason(file = "libculet.so")
      return "#{find(file)} does not load: #{@load_error}; rebuild it with #{rebuild}" if @load_error && find(file)

      reason = recorded(file)
      return "#{file} was not built: #{reason}; then run #{rebuild}" if reason

      "#{file} is not built: run #{rebuild}"
    end

    # @return [String, nil] the root of the checkout these files belong to; nil in an installed gem, which has
    #   allocator/ too but never the repository's own scripts
    def checkout
      root = File.expand_path("../..", __dir__)
      root if File.exist?(File.join(root, "bin/setup"))
    end

    def directories
      root = checkout
      extensions = extension_directory
      [*(File.join(root, "allocator/build") if root), __dir__, *(File.join(extensions, "culet") if extensions),
       *$LOAD_PATH.map { |directory| File.join(directory.to_s, "culet") }]
    end
    private_class_method :directories

    def extension_directory
      return unless defined?(Gem) && Gem.respond_to?(:loaded_specs)

      Gem.loaded_specs["culet"]&.extension_dir
    end
    private_class_method :extension_directory

    def recorded(file)
      record = find(MISSING_RECORD)
      record && File.read(record, encoding: "UTF-8")[/^#{Regexp.escape(file)}: (.*)$/, 1]
    end
    private_class_method :recorded

    def rebuild = checkout ? "#{checkout}/bin/setup" : "`gem pristine culet --extensions`"
    private_class_method :rebuild
  end
end
