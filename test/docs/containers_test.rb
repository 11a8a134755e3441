# frozen_string_literal: true

require "test_helper"
require_relative "../../packaging/source_gem"
require_relative "../roots/in_tests"
require_relative "page"
require_relative "podman"

# The Dockerfiles of the guide as it has them: built, run, checked by the guide's commands, and taken out again. The images
# that they name are Debian's and Ubuntu's packages here, with what ruby:slim has of Ruby's.
class DocsContainersTest < Minitest::Test
  PAGE = "docs/guide/debian-image.md"
  # Image => the suite that it is made of here, and its packages.
  IMAGES = { "ruby:3.4-slim" => ["trixie", %w[ruby ruby-dev]], "debian:12-slim" => ["bookworm", %w[git imagemagick nodejs chromium]],
             "ubuntu:24.04" => ["noble", []] }.freeze
  APPLICATION = <<~RUBY
    puts "on culet: \#{File.read("/proc/self/maps").include?("libculet.so")}, process \#{$$}"
    $stdout.flush
    sleep
  RUBY
  # Programs that a Ruby application starts; each prints what it does without culet.
  CHILDREN = <<~RUBY
    require "open3"
    page = "<script>document.title = [1, 2, 3].map((x) => x * x).join()</script>"
    { "git" => ["git", "hash-object", "--stdin"], "node" => ["node", "-e", "console.log([...Array(1e5).keys()].map(String).join('').length)"],
      "magick" => ["convert", "-size", "400x300", "plasma:red-blue", "-seed", "1", "-blur", "0x4", "-format", "%w %h", "info:"],
      "browser" => ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom", "data:text/html,\#{page}"] }.each do |name, words|
      out, err, status = Open3.capture3(*words, stdin_data: "culet")
      puts [name, status.exitstatus, out.strip[-60..] || out.strip, err[/culet.*|free\\(\\).*|ld\\.so.*/]].inspect
    end
  RUBY
  PATIENCE_SECONDS = 180

  include Roots::InTests

  def setup
    skip_unless_all

    @folder = new_folder
    @podman = Podman.new(@folder)
    @gems = [*Packaging::SourceGem.all(@folder), *Dir["#{ROOT}/.gems/ruby/#{RbConfig::CONFIG["ruby_version"]}/cache/*.gem"]]
    File.write("#{@folder}/app.rb", APPLICATION)
    File.write("#{@folder}/children.rb", CHILDREN)
  rescue Podman::Missing => e
    skip e.message
  end

  def teardown = @podman&.close

  def test_the_page_names_these_images
    assert_equal IMAGES.keys.first(2), dockerfiles.keys
  end

  def test_the_image_of_ruby = assert_image("ruby:3.4-slim", dockerfiles.fetch("ruby:3.4-slim"))

  def test_the_image_of_debian
    assert_image("debian:12-slim", dockerfiles.fetch("debian:12-slim"))
    assert_children_unharmed("made/debian:12-slim")
  end

  # The page names it beside Debian.
  def test_the_image_of_ubuntu = assert_image("ubuntu:24.04", dockerfiles.fetch("debian:12-slim").sub("debian:12-slim", "ubuntu:24.04"))

  private

  # @return [Hash{String => String}] the page's Dockerfiles by the image that they begin with
  def dockerfiles
    texts = Page.new(PAGE).blocks.select { |block| block.language == "dockerfile" }.map(&:code)
    texts.to_h { |text| [text[/^FROM (.*)/, 1], text] }
  end

  # It is built, its program runs on culet as process 1, and without the lines that the page removes it does not.
  def assert_image(image, text)
    suite, packages = IMAGES.fetch(image)
    @podman.import("docker.io/library/#{image}", plain_root(suite, packages: packages), @gems)
    build("made/#{image}", text)
    started("made/#{image}") do |container|
      assert_match(/^ok +allocator +culet serves malloc/, say(container, "culet", "doctor", "1"))
      assert_match(/^malloc: culet/, say(container, "culet", "report", "1"))
      refute_match(/^bad /, say(container, "culet", "doctor"))
      refute_includes say(container, "sh", "-c", "dpkg-query --list | cut -c1-40"), "ii  gcc "
    end
    assert_taken_out(text, image)
  end

  def assert_taken_out(text, image)
    build("without/#{image}", text.sub(/^ENTRYPOINT.*\n/, ""))
    started("without/#{image}", served: false) { |container| assert_match(/^\S+ +allocator +glibc serves malloc/, say(container, "culet", "doctor", "1")) }
  end

  # What they print is the same in the image's own environment and on culet.
  def assert_children_unharmed(image)
    plain, served = [[], %w[culet run --]].map { |words| run_children(image, words) }
    assert_equal 4, served.lines.size
    assert_equal plain, served
    refute_match(/, (?!0)\d+, /, served)
  end

  def run_children(image, words)
    out, = assert_success(*@podman.command(*Podman::RUN, "--rm", "--entrypoint", "", "--volume", "#{@folder}/children.rb:/children.rb:ro",
                                           image, *words, "ruby", "/children.rb"), patience: PATIENCE_SECONDS)
    out
  end

  def build(image, text)
    context = Dir.mktmpdir("context", @folder)
    @podman.build(image, text, context)
  end

  def started(image, served: true)
    @podman.with_container(image, "--volume", "#{@folder}/app.rb:/app.rb:ro") do |container|
      assert_equal "on culet: #{served}, process 1\n", @podman.first_line(container)
      yield container
    end
  end

  def say(container, *words) = @podman.podman("exec", container, *words)
end
