# frozen_string_literal: true

require_relative "server"
require "cgi"
require "uri"

# Every link of the site, in its files: to pages and headings that are there, and nothing is loaded from another host.
class SiteLinksTest < Minitest::Test
  ELEMENT = /<(?<name>a|link|script|img|iframe|source|use)\b(?<attributes>[^>]*)>/
  # What a page loads, other than links to follow.
  LOADED = %w[link script img iframe source].freeze
  private_constant :ELEMENT, :LOADED

  def setup
    skip "takes minutes; bin/test --all runs it" unless all_tests?

    @site = Site.shared
  end

  def test_links
    dead = pages.flat_map do |path|
      targets(path).filter_map { |_, target| "#{path}: #{target}" unless leads?(path, target) }
    end
    assert_operator pages.size, :>, 300
    assert_empty dead.uniq.first(40)
  end

  def test_nothing_is_loaded_from_elsewhere
    loaded = pages.flat_map { |path| targets(path).filter_map { |name, target| target if LOADED.include?(name) } }
    assert_empty loaded.uniq.grep(%r{\A(?:https?:)?//})
    styles = Dir["#{@site.folder}/**/*.css"].reject { |file| File.read(file).scan(/url\(["']?(?!data:)(.*?)\)|@import/).empty? }
    assert_empty styles
  end

  private

  # Reports hold data that looks like links in their scripts; they load nothing, which their own tests assert.
  def pages = @pages ||= @site.pages.reject { |path| path.start_with?("/examples/") && path.end_with?(".html") }

  def html(path) = (@html ||= {})[path] ||= File.read(file(path), encoding: Encoding::UTF_8)

  def file(path) = File.join(@site.folder, path.end_with?("/") ? "#{path}index.html" : path)

  def targets(path)
    html(path).gsub(%r{<script\b[^>]*>.*?</script>}m) { |script| script[/\A<[^>]*>/] }.scan(ELEMENT).filter_map do |name, attributes|
      target = attributes[/\s(?:href|src|xlink:href)=(["'])(.*?)\1/, 2]
      [name, CGI.unescapeHTML(target)] if target
    end
  end

  def leads?(path, target)
    return well_formed?(target) if target.match?(/\A(?:https?|mailto):/)
    return true if target.match?(/\A(?:javascript|data):/)

    place, anchor = target.split("#", 2)
    found = place.to_s.empty? ? path : local(path, place)
    found && (anchor.to_s.empty? || !found.end_with?("/", ".html") || anchor?(found, anchor))
  end

  def well_formed?(target)
    URI.parse(target).then { |uri| uri.scheme == "mailto" || !uri.host.to_s.empty? }
  rescue URI::InvalidURIError
    false
  end

  # @return [String, nil] the path on the site
  def local(path, place)
    folder = path.end_with?("/") ? path : File.dirname(path)
    address = place.start_with?("/") ? place : File.expand_path(place, "/culet#{folder}")
    address += "/" if place.end_with?("/") && !address.end_with?("/")
    return unless address == "/culet" || address.start_with?("/culet/")

    target = URI::DEFAULT_PARSER.unescape(address.delete_prefix("/culet").sub(/\?.*/, ""))
    target = "/" if target.empty?
    return target if target.end_with?("/") && File.file?(file(target))
    return "#{target}/" if File.file?(file("#{target}/"))

    target if File.file?(file(target))
  end

  def anchor?(path, anchor)
    names = (@anchors ||= {})[path] ||= html(path).scan(/\s(?:id|name)=(["'])(.*?)\1/).map(&:last).to_h { |name| [CGI.unescapeHTML(name), true] }
    names.key?(anchor) || names.key?(URI::DEFAULT_PARSER.unescape(anchor))
  end
end
