# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require_relative "debian"
require_relative "extensions"
require_relative "outcomes"
require_relative "program"

module Suites
  # CRuby's own tests, from the sources of the Ruby that is installed, run by that Ruby as Debian runs them (its list of
  # tests that cannot pass outside of a build is honoured). Each folder of tests is one process, so that a heap grows old.
  class CRubySuite
    FOLDERS = %w[ruby -ext- objspace fiber json zlib openssl socket io monitor ripper fiddle psych stringio strscan bigdecimal date
                 digest etc pathname readline coverage].freeze
    FOLDER_SECONDS = 3_000
    # A machine that is busy with both runs is slower than the suite takes it to be.
    TIMEOUT_SCALE = "3"
    MARKED = "a Ruby on culet marks its environment with CULET_INHERITED"
    KNOWN = { "TestProcess#test_execopts_env" => MARKED, "TestProcess#test_execopts_unsetenv_others" => MARKED }.freeze
    NEUTRAL = %w[LD_PRELOAD MALLOC_ARENA_MAX MALLOC_CONF GLIBC_TUNABLES RUBYOPT RUBYLIB GEM_HOME GEM_PATH CULET_CHILDREN CULET_INHERITED
                 BUNDLE_GEMFILE TESTOPTS].to_h { |name| [name, nil] }.freeze
    private_constant :FOLDER_SECONDS, :TIMEOUT_SCALE, :MARKED, :NEUTRAL

    # @param library [String] what is preloaded
    # @param work [String] a scratch folder
    # @param only [Array<String>] files below test/, e.g. "ruby/test_gc.rb"; all where none is named
    # @raise [Unavailable] where the sources cannot be had
    def initialize(library:, work:, only: [])
      @library = library
      @work = work
      name, version = Debian.source_of(RbConfig.ruby)
      raise Unavailable, "#{RbConfig.ruby} is not from a Debian package, so that its sources are not known" unless name

      @source = Debian.source(name, version)
      @extensions = Extensions.new(source: @source, folder: "#{@source}-extensions-#{RUBY_VERSION}")
      @only = only
    end

    # @return [Hash{String => String}] tests that fail on culet for a good reason
    def known = KNOWN

    # @param preload [Boolean]
    # @return [Outcomes]
    def run(preload)
      folders.map { |folder, files| run_files(preload, files, "#{folder}: ") }.reduce(Outcomes.new, :+)
    end

    # @param name [String] of a test, as "TestGc#test_start"
    # @param preload [Boolean]
    # @return [Symbol] what became of it
    def again(name, preload)
      suite = name[/\A[^#]+/][/\w+\z/]
      files = folders.flat_map(&:last).select { |file| File.read(File.join(@source, "test", file)).include?(suite) }
      run_files(preload, files, "", "-n", name)[name]
    end

    # @param text [String] what the runner wrote
    # @return [Outcomes]
    def self.parse(text)
      by_name = text.scan(%r{^\[ *\d+/ *\d+\] (.+?) = \d+\.\d+ s}).to_h { |(name)| [name, :passed] }
      text.scan(/^ +\d+\) (Failure|Error|Skipped):\n(\S+?)(?: \[|:?$)/) do |kind, name|
        by_name[name] = kind == "Skipped" ? :skipped : :failed
      end
      Outcomes.new(by_name)
    end

    private

    def folders
      @extensions.build
      @folders ||= FOLDERS.to_h { |folder| [folder, files(folder)] }.reject { |_, files| files.empty? }
    end

    def files(folder)
      found = Dir.glob("#{folder}/**/test_*.rb", base: File.join(@source, "test")).sort
      found &= @only unless @only.empty?
      found.select { |file| @extensions.enough_for?(File.join(@source, "test", file)) }
    end

    def run_files(preload, files, place, *options)
      place = "#{place}#{files.size} files: "
      text, wrong = Program.run(RbConfig.ruby, "-I#{@extensions.build}", "test/runner.rb", "-v", "--show-skip", *excludes, *options,
                                *files.map { |file| "test/#{file}" },
                                environment: environment(preload), directory: tree(preload), seconds: FOLDER_SECONDS)
      wrong ||= "the runner did not come to its end: #{text.lines.last.to_s.strip}" unless text.match?(/^\d+ tests, /)
      self.class.parse(text) + Outcomes.new(complaints: [*("#{place}#{wrong}" if wrong)])
    end

    def excludes
      listed = %w[any amd64 autopkgtest].map { |name| File.join(@source, "debian/tests/excludes", name) }.select { |path| File.directory?(path) }
      ["test/excludes", *listed].map { |path| "--excludes-dir=#{path}/" }
    end

    def environment(preload)
      settings = File.join(@source, "debian/openssl.cnf")
      NEUTRAL.merge("RUBY_TEST_TIMEOUT_SCALE" => TIMEOUT_SCALE, "LD_PRELOAD" => (@library if preload), "LC_ALL" => "C.UTF-8",
                    "OPENSSL_CONF" => (settings if File.exist?(settings)), "TMPDIR" => File.join(tree(preload), "tmp"))
    end

    # Tests write beside themselves: each run has a copy of its own.
    def tree(preload)
      folder = File.join(@work, preload ? "culet" : "glibc")
      return folder if File.directory?(folder)

      FileUtils.mkdir_p(File.join(folder, "tmp"))
      FileUtils.cp_r(%w[test tool].map { |name| File.join(@source, name) }, folder)
      FileUtils.touch(File.join(folder, "test/openssl/fixtures/pkey/empty.pem")) # no patch can have brought an empty file
      folder
    end
  end
end
