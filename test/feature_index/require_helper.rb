# frozen_string_literal: true

require "test_helper"
require "culet/system/clock"
require "json"
require "timeout"

# Programs run twice, by plain Ruby and with culet/require: what they print, what they load and how they end has to be the
# same.
module RequireHelper
  # Prints at the end which features there are, and with culet/require what came of the calls. Culet's own are left out.
  TELL = <<~'RUBY'
    at_exit do
      features = $LOADED_FEATURES.reject { |path| path.start_with?("#{ENV.fetch("CULET_ROOT")}/lib/", "#{ENV.fetch("CULET_ROOT")}/boot/lib/") || path == __FILE__ }
      text = [features, defined?(Culet::Require) ? Culet::Require.figures.transform_keys(&:to_s) : nil]
      File.binwrite(ENV.fetch("TOLD"), Marshal.dump(text))
    end
  RUBY

  # How a program went.
  Run = Struct.new(:out, :err, :exitstatus, :features, :figures)

  # After so long a folder that was made here is one that the index keeps.
  AGE_SECONDS = 3.2

  # Folders with files, as old as the index wants them: those of all tests of a class are made at once.
  class Files
    # @param contents [Hash{String => String}] path below the directory => text
    def initialize(contents)
      @directory = File.realpath(Dir.mktmpdir("culet-require"))
      contents.each { |path, text| write(path, text) }
      @made = Culet::Clock.now
    end

    # @return [String]
    attr_reader :directory

    # Waits until they are old enough.
    def settle
      left = @made + AGE_SECONDS - Culet::Clock.now
      sleep left if left.positive?
      self
    end

    # @return [String] the path
    def write(path, text)
      full = File.join(@directory, path)
      FileUtils.mkdir_p(File.dirname(full))
      File.write(full, text)
      full
    end

    def remove = FileUtils.rm_rf(@directory)
  end

  # Runs a script both ways.
  #
  # @param script [String] Ruby; ARGV is `words`
  # @param load_path [Array<String>] in front of Ruby's own
  # @return [Run] that with culet/require
  def assert_as_plain(script, words: [], load_path: [], flags: [], env: {})
    Dir.mktmpdir do |scratch|
      File.write(File.join(scratch, "script.rb"), script)
      File.write(File.join(scratch, "tell.rb"), TELL)
      command = [RbConfig.ruby, "-w", *flags, *[*load_path, "#{TestHelper::ROOT}/lib"].map { |folder| "-I#{folder}" }, "-r#{scratch}/tell.rb"]
      plain, ours = [[], ["-rculet/require"]].map do |more|
        run_and_tell([*command, *more, File.join(scratch, "script.rb"), *words], scratch, env)
      end
      assert_same_run(plain, ours)
      ours
    end
  end

  # @return [Run]
  def run_and_tell(command, scratch, env = {})
    told = env["TOLD"] || File.join(scratch, "told")
    FileUtils.rm_f(told)
    out, err, status = run_program(*command, chdir: scratch, env: TestHelper::NEUTRAL.merge(
      "CULET_ROOT" => TestHelper::ROOT, "TOLD" => told, "CULET_REQUIRE" => nil, "CULET_REQUIRE_CACHE" => cache, **env
    ))
    features, figures = File.exist?(told) ? Marshal.load(File.binread(told)) : []
    Run.new(out, err, status.exitstatus, features, figures)
  end

  # @return [String] the folder that the index of these tests is kept in
  def self.cache
    @cache ||= TestHelper.lasting_folder
  end

  def cache = RequireHelper.cache

  def assert_same_run(plain, ours)
    refute_nil plain.features, plain.err
    refute_nil ours.features, ours.err
    assert_equal plain.out, ours.out, ours.err
    assert_equal plain.err, ours.err
    assert_equal plain.exitstatus, ours.exitstatus
    # As in a shell's `diff`: the lists are long.
    assert_equal plain.features - ours.features, ours.features - plain.features
    assert_equal plain.features, ours.features
    refute_nil ours.figures, "culet/require was not at work"
  end
end
