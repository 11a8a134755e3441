# frozen_string_literal: true

require "test_helper"
require "json"
require "rubygems/package"
require "culet/version"
require_relative "../../packaging/platform_gem"
require_relative "../roots/checkout"
require_relative "../roots/in_tests"

# The gem for aarch64, which this machine's cross compiler makes, in a Debian of that processor: installed, loaded and used,
# and the extension's own tests. qemu-user runs it, which has neither ptrace nor process_vm_readv: what reads a process reads
# it while it runs, by /proc.
class Aarch64Test < Minitest::Test
  include Roots::InTests

  PLATFORM = "aarch64-linux-gnu"
  SUITE = "trixie"
  RUBY = "3.3"
  # With one Ruby alone rake-compiler would compile for this machine besides, into the checkout.
  RUBIES = ["3.1", RUBY].freeze
  PACKAGES = %w[ruby ruby-dev gcc libc6-dev make libjemalloc2 libmimalloc3 libtcmalloc-minimal4t64].freeze
  TESTS = %w[native stats trim/settings trim/return profile/labels profile/recording].freeze
  # Of the gem => of the checkout.
  COMPILED = { "#{RUBY}/culet.so" => "lib/culet", "#{RUBY}/culet_boot.so" => "lib/culet", "libculet.so" => "allocator/build", "replay/culet-trace.so" => "replay/build",
               "replay/culet-replay" => "replay/build", "sampler/culet-sampler.so" => "sampler/build", "reader/culet-scope" => "reader/build",
               "boot/syscall_counter/culet-syscall-counter.so" => "boot/syscall_counter/build" }.freeze
  # A program of which a report has to find the strings.
  BYTES = 30_000_000
  READ = <<~SH.freeze
    culet run -- ruby -e '$kept = Array.new(#{BYTES / 1000}) { "x" * 1000 }; puts; $stdout.flush; sleep' >ready &
    until [ -s ready ]; do sleep 0.2; done
    culet report --json $!
    kill $!
  SH
  # Under an emulator, on a busy machine.
  PATIENCE_SECONDS = 1200

  def setup
    skip "this machine is one" if RbConfig::CONFIG["host_cpu"] == "aarch64"
    @root = foreign_root(SUITE, packages: PACKAGES)
    @share = new_folder
  end

  def test_the_gem_works_there_and_passes_the_tests_of_the_extension
    gem = platform_gem
    assert_installs(gem)
    assert_reads_a_process
    assert_tests_pass(checkout(gem))
  end

  private

  def platform_gem
    Packaging::PlatformGem.new(Packaging::Toolchain.new(PLATFORM, rubies: RUBIES), build: "tmp/platform-test-run").call(@share)
  rescue Packaging::DebianArchive::Missing => e
    skip e.message
  ensure
    FileUtils.rm_rf("#{ROOT}/tmp/platform-test-run")
  end

  # By a RubyGems that knows the platform, beside what it depends on.
  def assert_installs(gem)
    FileUtils.cp(Dir["#{ROOT}/.gems/ruby/*/cache/*.gem"], @share)
    say("cd #{Roots::Root::SHARE} && gem install --local --no-document #{File.basename(gem)}")
    assert_empty Dir["#{@share}/home/extensions/**/*.so"]
    script = "p Culet.native?, Culet.allocator.values_at(:name, :active), Culet.stats[:used_bytes] > 0, Culet.trim > 0, Culet.warmup[:steps].size > 1"
    out = say("culet run -- ruby -rculet -e 'Array.new(100_000) { \"x\" * 100 }; GC.start; #{script}'")
    assert_equal ["true", '["culet", true]', "true", "true", "true"], out.lines(chomp: true)
    assert_equal "glibc", JSON.parse(say("culet doctor --json")).dig("allocator", "name")
  end

  def assert_reads_a_process
    report = JSON.parse(say("cd #{Roots::Root::SHARE}; #{READ}"))
    assert_equal %w[culet blocks], report.values_at("allocator", "allocator_level")
    assert_equal report.fetch("rss_bytes"), report.fetch("levels").values.sum
    assert_in_delta BYTES, report.dig("malloc", "used_bytes"), BYTES / 4
    assert_match(/does not let this program stop process/, report.fetch("problems").join)
  end

  def assert_tests_pass(checkout)
    TESTS.each do |name|
      out, err, status = run_program(*checkout.command("-w", "-Ilib", "-Itest", "-r./bin/gems.rb", "test/#{name}_test.rb"), patience: PATIENCE_SECONDS)
      assert_predicate status, :success?, "#{name}:\n#{out}#{err}"
      assert_match(/ 0 skips$/, out)
    end
  end

  def checkout(gem)
    folder = File.join(@share, "unpacked")
    Gem::Package.new(gem).extract_files(folder)
    Roots::Checkout.new(@root, RUBY, share: @share) do |copy|
      COMPILED.each do |name, place|
        FileUtils.mkdir_p(File.join(copy, place))
        FileUtils.cp(File.join(folder, "lib/culet", name), File.join(copy, place))
      end
    end
  end

  def say(script)
    home = "#{Roots::Root::SHARE}/home"
    @root.run("sh", "-euc", "PATH=#{home}/bin:$PATH; #{script}", share: @share, env: { "GEM_HOME" => home, "GEM_PATH" => home })
  end
end
