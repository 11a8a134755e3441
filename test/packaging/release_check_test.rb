# frozen_string_literal: true

require "test_helper"
require "culet/version"
require_relative "../../packaging/release_check"

# What keeps a version from being published.
class ReleaseCheckTest < Minitest::Test
  FILES = %w[lib/culet/version.rb SECURITY.md debian/control debian/copyright CHANGELOG.md .github/workflows/release.yml
             .github/workflows/pages.yml].freeze

  def setup
    @root = new_folder
    FILES.each do |name|
      FileUtils.mkdir_p(File.dirname(File.join(@root, name)))
      FileUtils.cp(File.join(ROOT, name), File.join(@root, name))
    end
  end

  def test_a_checkout_that_is_ready
    make_ready
    assert_empty problems(tag: "v#{Culet::VERSION}")
  end

  def test_a_placeholder_for_the_address
    make_ready
    change("SECURITY.md") { |text| text.sub("culet.test", "culet.example") }
    assert_equal ["SECURITY.md names culet.example, a placeholder; write the address at which the project is published"], problems
  end

  def test_another_tag_and_a_version_without_a_section
    make_ready
    change("CHANGELOG.md") { |text| text.sub("## #{Culet::VERSION}", "## Unreleased") }
    assert_equal ["the tag is v9.9.9, but lib/culet/version.rb has #{Culet::VERSION}", "CHANGELOG.md has no section for #{Culet::VERSION}"],
                 problems(tag: "v9.9.9")
  end

  def test_an_action_by_tag_and_an_image_by_tag
    make_ready
    change(".github/workflows/release.yml") { |text| text.sub(/actions.checkout@\h{40}/, "actions/checkout@v4").sub(/(ruby:3.4-slim)@sha256:\h+/, "\\1") }
    assert_equal ["release.yml uses actions/checkout@v4; name the action by commit", "release.yml uses the image ruby:3.4-slim; name the image by digest"],
                 problems
  end

  # The address stands in files that cannot take it from the constant.
  def test_the_files_of_this_checkout_name_one_address
    host = Culet::HOMEPAGE[%r{\Ahttps://([^/]+)}, 1]
    %w[SECURITY.md debian/control debian/copyright].each { |name| assert_includes File.read("#{ROOT}/#{name}"), host, name }
  end

  # No workflow uses an action by a name that can be moved.
  def test_the_workflows_of_this_checkout_name_actions_by_commit
    uses = Dir["#{ROOT}/.github/workflows/*.yml"].flat_map { |path| File.readlines(path).filter_map { |line| line[/\buses: (\S+)/, 1] } }
    refute_empty uses
    assert_empty uses.grep_v(/@\h{40}\z/)
  end

  private

  def problems(**options) = Packaging::ReleaseCheck.new(@root).problems(**options)

  def change(name)
    path = File.join(@root, name)
    File.write(path, yield(File.read(path)))
  end

  def make_ready
    FILES.each { |name| change(name) { |text| text.gsub("culet.example", "culet.test") } }
    change("CHANGELOG.md") { |text| text.sub("## Unreleased", "## #{Culet::VERSION}") }
    %w[release pages].each do |name|
      change(".github/workflows/#{name}.yml") { |text| text.gsub(/\b((?:debian|ruby):\d[\w.-]*)/, "\\1@sha256:#{"0" * 64}") }
    end
  end
end
