# frozen_string_literal: true

require_relative "errors"

module Culet
  # Where the compiled files are, and why they are missing where they are.
  # A checkout has them under allocator/build and lib/culet; an installed gem
  # has them in its extension directory, which is on the load path.
  module Native
    MISSING_RECORD = "native_missing.txt"

    module_function

    # @param file [String] "libculet.so" or another file that the gem's build installs
    # @return [String, nil] its absolute path
    def find(file)
      candidates = []
      candidates << File.join(checkout, "allocator/build", file) if checkout
      candidates << File.join(__dir__, file)
      candidates.concat($LOAD_PATH.map { |directory| File.join(directory.to_s, "culet", file) })
      extensions = extension_directory
      candidates << File.join(extensions, "culet", file) if extensions
      candidates.find { |path| File.file?(path) }&.then { |path| File.expand_path(path) }
    end

    # @return [String] one sentence: what the build lacked, or how to build
    def missing_reason
      record = find(MISSING_RECORD)
      return File.read(record, encoding: "UTF-8").strip if record
      return "culet's native part is not built: run bin/setup in #{checkout}" if checkout

      "culet's native part is not built: reinstall the gem with `gem pristine culet` and see what that says"
    end

    # @return [String, nil] the root of the checkout these files belong to
    def checkout
      root = File.expand_path("../..", __dir__)
      # The packed gem has allocator/ too, but never the repository's own scripts.
      root if File.exist?(File.join(root, "bin/setup"))
    end

    def extension_directory
      return unless defined?(Gem) && Gem.respond_to?(:loaded_specs)

      Gem.loaded_specs["culet"]&.extension_dir
    end
  end
end
