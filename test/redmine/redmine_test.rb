# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "../roots/checkout"
require_relative "../roots/in_tests"

# A Redmine as Debian packages it, on Ruby 3.3, boots by plain Ruby, with culet/require and under `culet requires`, each
# without and with Bootsnap: and has loaded the same, in the same order.
class RedmineTest < Minitest::Test
  include Roots::InTests

  RUBY = "3.3"
  PACKAGES = ["redmine", "redmine-sqlite", "ruby-bootsnap", *Roots::Checkout.packages(RUBY)].freeze
  APPLICATION = "/usr/share/redmine"
  SHARE = Roots::Root::SHARE
  # With bootsnap in the bundle; it is loaded where it is wanted.
  GEMFILE = %(eval_gemfile "#{APPLICATION}/Gemfile"\ngem "bootsnap", require: false\n).freeze
  ENVIRONMENT = { "RAILS_ENV" => "production", "X_DEBIAN_SITEID" => "default", "BUNDLE_GEMFILE" => "#{SHARE}/Gemfile", "BUNDLE_APP_CONFIG" => "#{SHARE}/bundle",
                  "CULET_REQUIRE_CACHE" => "#{SHARE}/index" }.freeze
  BOOT_SECONDS = 600
  OWN_BYTES = 200_000
  # A converter that Ruby itself loads by C code when it meets an encoding.
  ENCODING = %r{/enc/}
  # What Ruby's Coverage consists of, which tells what ran.
  COVERAGE = %r{/coverage\.(?:rb|so)\z}

  # Where the application is: a root, and a folder that it shares.
  Place = Struct.new(:checkout, :share)
  # How a boot went; loader: the class of what loads constants; document: what `culet requires` told.
  Boot = Struct.new(:features, :figures, :loader, :document)

  # What all tests use is made once.
  def self.made = @made ||= {}

  def setup
    @place = self.class.made[:place] ||= place
  end

  def test_the_index_when_it_is_built_and_when_it_is_there
    first, second = Array.new(2) { boot(*with_index, env: { "CULET_REQUIRE_CACHE" => "#{SHARE}/own_index" }) }
    [first, second].each do |one|
      assert_equal plain.features, one.features
      assert_operator one.figures[:found], :>, 1000
    end
    assert_operator first.figures[:builds], :>, 0
    assert_equal 0, second.figures[:builds]
  end

  def test_the_index_beside_bootsnap
    assert_equal plain_with_bootsnap.features, boot(*with_index, bootsnap: true).features
  end

  def test_recorded
    assert_recorded(plain, boot(verb: %w[requires --json]))
  end

  def test_recorded_with_bootsnap
    assert_recorded(plain_with_bootsnap, boot(verb: %w[requires --json], bootsnap: true))
  end

  def test_code_that_never_ran
    looked = boot(verb: %w[requires --unused --json])
    assert_equal plain.features, looked.features.grep_v(COVERAGE)
    told = looked.document
    assert_empty told["problems"]
    assert_equal 1, told["processes"].size
    assert_equal told["unused_bytes"], told["gems"].sum { |gem| gem["unused_bytes"] }
    # What is left is culet's own.
    assert_includes 1..OWN_BYTES, told["iseq_bytes"] - told["evaluated_bytes"] - told["gems"].sum { |gem| gem["iseq_bytes"] }
    assert_operator told["iseq_bytes"], :>, 20_000_000
    # A library that draws documents is loaded, and used by no boot.
    drawing = told["gems"].find { |gem| gem["gem"].start_with?("rbpdf ") }
    assert_operator drawing["unused_bytes"], :>, 0.9 * drawing["iseq_bytes"]
    # And zeitwerk has loaded the application.
    loading = told["gems"].find { |gem| gem["gem"].start_with?("zeitwerk ") }
    assert_operator loading["unused_bytes"], :<, 0.9 * loading["iseq_bytes"]
  end

  private

  def place
    root = root("testing", packages: PACKAGES)
    share = TestHelper.lasting_folder
    checkout = Roots::Checkout.new(root, RUBY, share: share)
    File.write(File.join(share, "Gemfile"), GEMFILE)
    Place.new(checkout, share).tap do |made|
      # The first time Bundler resolves the Gemfile, with parts of its own that it does not load again.
      inside(made.checkout.command("-rbundler/setup", "-e", "0", env: ENVIRONMENT))
    end
  end

  def plain = self.class.made[:plain] ||= boot

  # By what caches Bootsnap fills in its first boot, and in the second.
  def plain_with_bootsnap = self.class.made[:bootsnap] ||= Array.new(3) { boot(bootsnap: true) }.last

  # What a Ruby that runs nothing has loaded, recorded or not.
  def bare
    self.class.made[:bare] ||= inside(@place.checkout.command("-e", "puts $LOADED_FEATURES")).lines(chomp: true)
  end

  def with_index = ["-I#{Roots::Checkout::PATH}/lib", "-rculet/require"]

  # @param flags [Array<String>] of Ruby
  # @param verb [Array<String>, nil] of culet's that the boot runs under, in JSON
  # @param env [Hash{String => String}] what is another than in ENVIRONMENT
  def boot(*flags, verb: nil, bootsnap: false, env: {})
    told = File.join(@place.share, "told")
    FileUtils.rm_f(told)
    words = [*flags, "#{Roots::Checkout::PATH}/test/redmine/boot.rb", "#{SHARE}/told", *("#{SHARE}/bootsnap" if bootsnap)]
    surroundings = { env: ENVIRONMENT.merge(env), chdir: APPLICATION }
    command = if verb
                @place.checkout.culet(*verb, "--out", "#{SHARE}/document", "--", @place.checkout.ruby, *words, **surroundings)
              else
                @place.checkout.command(*words, **surroundings)
              end
    inside(command)
    document = JSON.parse(File.read(File.join(@place.share, "document"))) if verb
    # The names are those of this machine's file system.
    Boot.new(*Marshal.load(File.binread(told)), document)
  end

  # @return [String] what it printed
  def inside(command)
    out, err, status = run_program(*command, env: NEUTRAL, patience: BOOT_SECONDS)
    assert_predicate status, :success?, err.lines.last(20).join
    out
  end

  def assert_recorded(plain, recorded)
    assert_equal plain.features, recorded.features
    assert_equal "Zeitwerk::Loader", recorded.loader
    told = recorded.document
    assert_equal [0, true, []], told.values_at("exit_status", "complete", "problems")
    seen = told["features"].filter_map { |one| one["path"] }
    assert_equal [], (recorded.features - bare - seen).grep_v(ENCODING)
    assert_operator (seen & recorded.features).size, :>, 2000
  end
end
