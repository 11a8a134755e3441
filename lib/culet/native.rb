# frozen_string_literal: true

# Another copy of the gem is loaded, see Culet::Native.another_copy?.
return if defined?(Culet::Native)

require_relative "errors"

module Culet
  # Finds the compiled files, or the reason why they are missing. A checkout has them under allocator/build and
  # lib/culet, an installed gem in its extension directory.
  #
  # @api private
  module Native
    # The gem's build writes it: one line "FILE: reason" for each file it could not make.
    MISSING_RECORD = "native_missing.txt"

    @loaded = {}
    @load_errors = {}

    module_function

    # Loads an extension if it exists; otherwise `missing_reason` has the reason.
    #
    # @param file [String] "culet.so", or another extension of culet's
    # @return [Boolean] whether it is loaded
    def load(file = "culet.so")
      return true if loaded?(file)

      path = find(file) or return false
      require(path)
      @loaded[file] = true
    rescue LoadError => e
      @load_errors[file] = e.message
      false
    end

    # The first copy of the gem in a process serves: RUBYOPT may have loaded one by path, in a program whose bundle has
    # another. Two extensions would both replace Ruby's functions.
    #
    # @param path [String] a file that programs require by name
    # @param feature [String] the name
    # @return [Boolean] whether the file is of a copy that does not serve; then that of the other one is loaded instead
    def another_copy?(path, feature)
      return false if File.realpath(path) == entry_path(feature)

      load_entry(feature)
      true
    end

    # Loads what a program could require by name, as settings of Rails and job queues ask for.
    #
    # @param feature [String] e.g. "culet/auto"
    # @return [void]
    def load_entry(feature) = require(entry_path(feature))

    # @param file [String] as for `load`
    # @return [Boolean] whether the extension is loaded
    def loaded?(file = "culet.so") = @loaded.key?(file)

    # @param file [String] "libculet.so", "culet.so" or another extension
    # @return [String, nil] its absolute path
    def find(file)
      found = directories.map { |directory| File.join(directory, file) }.find { |path| File.file?(path) }
      found && File.expand_path(found)
    end

    # A program or library with a folder of its own: in a checkout it is where it is built, in an installed gem with the
    # other compiled files.
    #
    # @param folder [String] "boot/syscall_counter", "reader", "replay" or "sampler"
    # @param file [String]
    # @return [String] its absolute path
    # @raise [Culet::Error] when it is not built; the message says why and what to do
    def part(folder, file)
      root = checkout
      built = root && File.join(root, folder, "build", file)
      return built if built && File.file?(built)

      find("#{folder}/#{file}") || raise(Error, missing_reason("#{folder}/#{file}"))
    end

    # @param folder [String] as for `part`
    # @param file [String] a library for LD_PRELOAD
    # @return [String] its absolute path
    # @raise [Culet::Error] when it is not built, or LD_PRELOAD cannot name it
    def preloadable(folder, file)
      path = part(folder, file)
      return path unless path.match?(/[\s:]/)

      raise Error, "cannot preload #{path}: spaces and colons separate the entries of LD_PRELOAD; " \
                   "install culet at a path without them"
    end

    # @param file [String] as for `find`
    # @return [String] one sentence: what the build lacked, or how to build it
    def missing_reason(file = "libculet.so")
      problem = @load_errors[file]
      return "#{find(file)} does not load: #{problem}; rebuild it with #{rebuild}" if problem && find(file)

      return "culet's native part is for Linux, and this is #{RUBY_PLATFORM}" if elsewhere?

      reason = recorded(file)
      return "#{file} was not built: #{reason}; then run #{rebuild}" if reason

      "#{file} is not built: run #{rebuild}"
    end

    # @return [Boolean] whether this system has no native part of culet, and cannot have one
    def elsewhere? = !RUBY_PLATFORM.include?("linux")

    # Writes a warning of a part that a program has loaded. Where there is no native part each part would say the same:
    # one line stands for all.
    #
    # @param sentence [String]
    def warn(sentence)
      unless elsewhere? && sentence.include?(missing_reason("culet.so"))
        # A part of it may be the value of a variable.
        return Kernel.warn("culet: #{sentence.scrub("?").gsub(/[[:cntrl:]]+/, " ")}")
      end
      return if @warned

      @warned = true
      Kernel.warn("culet: culet works on Linux, and this is #{RUBY_PLATFORM}: it changes and records nothing here")
    end

    # @return [String, nil] root of the checkout; nil in an installed gem, which lacks bin/setup
    def checkout
      root = File.expand_path("../..", __dir__)
      root if File.exist?(File.join(root, "bin/setup"))
    end

    def entry_path(feature) = File.join(File.dirname(__dir__), "#{feature}.rb")

    # Lazy, because the last ones are slow to find.
    def directories
      Enumerator.new do |list|
        root = checkout
        list << File.join(root, "allocator/build") << __dir__ if root
        [activated_directory, *installed_directories].compact.each { |directory| list << File.join(directory, "culet") }
        list << File.join(__dir__, RUBY_VERSION[/\A\d+\.\d+/]) << __dir__
        $LOAD_PATH.each { |directory| list << File.join(directory.to_s, "culet") }
      end.lazy
    end

    def activated_directory
      return unless defined?(Gem) && Gem.respond_to?(:loaded_specs)

      specification = Gem.loaded_specs["culet"]
      specification.extension_dir if specification && specification.full_gem_path == File.expand_path("../..", __dir__)
    end

    # Where RubyGems puts built extensions, seen from the folder of the gem: a program that loads a file of culet by
    # path has not activated the gem. For a gem from a git repository, Bundler puts them beside the gems. The ABI is
    # Gem.extension_api_version, which does not exist without RubyGems.
    def installed_directories
      require "rbconfig"
      gem = File.expand_path("../..", __dir__)
      gems = File.dirname(gem)
      [File.dirname(gems), gems].flat_map do |base|
        Dir.glob("extensions/*/#{RbConfig::CONFIG["ruby_version"]}{,-static}/#{File.basename(gem)}", base: base)
           .map { |directory| File.join(base, directory) }
      end
    end

    def recorded(file)
      record = find(MISSING_RECORD)
      record && File.read(record, encoding: "UTF-8")[/^#{Regexp.escape(file)}: (.*)$/, 1]
    end

    def rebuild = checkout ? "#{checkout}/bin/setup" : "`gem pristine culet --extensions`"

    private_class_method :entry_path, :directories, :activated_directory, :installed_directories, :recorded, :rebuild
  end
end
