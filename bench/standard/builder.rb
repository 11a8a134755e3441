# frozen_string_literal: true

require "fileutils"
require "open3"
require "culet/system/executables"

module StandardBench
  # Builds the programs from the checkout, with the flags of the collection's release build. What cannot be built does
  # not keep the others from running.
  class Builder
    COMPILERS = { c: %w[CC cc], cxx: %w[CXX c++] }.freeze
    # -w: warnings of code that is not ours are of no use here. Newer compilers refuse some old C without the others.
    FLAGS = { c: %w[-O3 -DNDEBUG -w -Wno-implicit-function-declaration -Wno-implicit-int -Wno-int-conversion
                    -Wno-incompatible-pointer-types],
              cxx: %w[-O3 -DNDEBUG -w -std=gnu++17] }.freeze

    # @return [String] folder of the built programs, absolute
    attr_reader :built

    # @return [String] the collection's folder bench/, absolute
    attr_reader :sources

    # @param checkout [String] of the collection
    # @param into [String] a directory
    def initialize(checkout:, into:)
      @sources = File.expand_path("bench", checkout)
      @built = File.expand_path(into)
      @checkout = checkout
      @done = {}
    end

    # @raise [Culet::Error] where there is no checkout
    def check
      return if File.directory?(@sources)

      raise Culet::Error, "there is no mimalloc-bench in #{@checkout}; get it by `git clone #{SOURCE} #{@checkout}`, " \
                          "or name your checkout by --sources DIR"
    end

    # @param compiler [Symbol] of COMPILERS
    # @param words [Array<String>] its options and files
    # @return [String, nil] why it failed
    def self.compile(compiler, words, directory)
      variable, usual = COMPILERS.fetch(compiler)
      program = ENV.fetch(variable, usual)
      text, status = Open3.capture2e({ "LD_PRELOAD" => nil }, program, *words, chdir: directory)
      "it cannot be built: #{text.lines.grep(/error|undefined/).first.to_s.strip}" unless status.success?
    rescue Errno::ENOENT
      "there is no #{program}: install gcc and g++"
    end

    # @return [String, nil] why it cannot run: what is not installed or cannot be built
    def obstacle(program)
      lacking = program.needs.reject { |name| Culet::Executables.find(name) }
      return "#{lacking.join(", ")} not installed" unless lacking.empty?
      return unless (name = program.binary)

      @done.fetch(name) { @done[name] = build(name, Catalogue.recipes.fetch(name)) }
    end

    private

    # @return [String, nil] why it failed
    def build(name, recipe)
      files = sources_of(recipe)
      return ["bench/#{recipe.sources.join(", ")} is missing", recipe.hint].compact.join("; ") if files.empty?

      FileUtils.mkdir_p(@built)
      edited(name, recipe, files) { |ready, includes| compile(name, recipe, ready, includes) }
    end

    def sources_of(recipe)
      Dir.glob(recipe.sources, base: @sources).sort.reject { |file| recipe.without.include?(File.basename(file)) }
         .map { |file| File.join(@sources, file) }
    end

    # Copies beside the programs where texts are to be replaced.
    def edited(name, recipe, files)
      return yield(files, []) if recipe.edits.empty?

      folder = File.join(@built, "#{name}.edited")
      FileUtils.mkdir_p(folder)
      copies = files.to_h { |file| [File.join(folder, File.basename(file)), File.binread(file)] }
      missing = recipe.edits.keys.reject { |text| copies.each_value.any? { |content| content.include?(text) } }
      return "its sources have no #{missing.join(", ")}: another version of them is needed" unless missing.empty?

      copies.each do |path, content|
        File.binwrite(path, recipe.edits.reduce(content) { |text, (from, to)| text.gsub(from, to) })
      end
      yield(copies.keys, files.map { |file| "-I#{File.dirname(file)}" }.uniq)
    end

    def compile(name, recipe, files, includes)
      words = [*FLAGS.fetch(recipe.compiler), *recipe.flags, *includes, "-o", "#{name}.part", *files, "-pthread", "-lm"]
      failure = self.class.compile(recipe.compiler, words, @built)
      return failure if failure

      File.rename(File.join(@built, "#{name}.part"), File.join(@built, name))
      nil
    end
  end
end
