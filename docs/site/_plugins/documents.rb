# frozen_string_literal: true

require_relative "../navigation"
require_relative "../../../lib/culet/version"

# Makes a page of each document of the checkout, and a file of each picture or result file that one links to or shows.
# Links are written for the repository; on the site they lead to the pages and files.
class Documents < Jekyll::Generator
  ROOT = File.expand_path("../../..", __dir__)
  # What docs/site/examples.rb and `bench/report --charts` wrote.
  MADE = %w[tmp/site/examples tmp/site/charts].freeze
  # Attributes of HTML that name a file of the checkout.
  REFERENCE = /(?<attribute>href|src)="(?<path>[^":#]+)?(?<anchor>#[^"]*)?"/
  # What follows the language of a fenced block (`no-run`) is for the tests, and no Markdown of kramdown's.
  FENCE = /^(?<language>```\w+) [^`\n]*$/
  # A page or picture of these. The public host does not show the line.
  SHOWN = /^<!-- (?<kind>page|picture): (?<name>[\w-]+\.\w+)(?: (?<text>[^\n]+))? -->$/
  LINK = /\]\((?<path>[^)\s#:]+)/
  private_constant :MADE, :REFERENCE, :FENCE, :SHOWN, :LINK

  # A document as a page.
  class Page < Jekyll::PageWithoutAFile
    # @return [Navigation::Place]
    attr_reader :place

    def initialize(site, place)
      @place = place
      super(site, ROOT, place.folder, place.file ? File.basename(place.file) : "#{place.title}.md")
      self.content = place.text.gsub(FENCE) { Regexp.last_match[:language] }
      data.merge!("title" => place.title, "parent" => place.parent, "nav_order" => place.order,
                  "layout" => place.url == "/" ? "landing" : "default", "nav_exclude" => !place.listed,
                  "has_children" => place.expands, "has_toc" => false, "permalink" => place.url,
                  "source_file" => place.file, "render_with_liquid" => false,
                  "search_exclude" => !(place.file && place.listed))
      data.compact!
    end
  end

  # A file of the checkout at an address of the site.
  class CheckoutFile < Jekyll::StaticFile
    attr_reader :url

    def initialize(site, file, url)
      super(site, ROOT, File.dirname(file), File.basename(file))
      @url = url
    end

    def destination(folder) = File.join(folder, url)
  end

  # @param site [Jekyll::Site]
  def generate(site)
    @site = site
    site.config.merge!("repository_url" => Culet::HOMEPAGE, "version" => "culet #{Culet::VERSION}")
    pages = Navigation.new(ROOT).places.map { |place| Page.new(site, place) }
    @urls = pages.to_h { |page| [page.place.file, page.place.url] }
    @shown = {}
    # Ahead of the data of the search, which is made of what is rendered.
    site.pages.unshift(*pages)
    pages.each { |page| add_files(page.place) }
  end

  # @param html [String] of a document
  # @param place [Navigation::Place]
  # @return [String] with links that hold on the site, and with the pages and pictures that culet wrote
  def finish(html, place)
    linked = html.gsub(REFERENCE) do |all|
      match = Regexp.last_match
      next all unless match[:path]

      "#{match[:attribute]}=\"#{base}#{address(resolve(match[:path], place), place)}#{match[:anchor]}\""
    end
    linked.gsub(SHOWN) do
      kind, name, text = Regexp.last_match.captures
      kind == "page" ? frame(name) : "<p><img src=\"#{base}#{@shown.fetch(name)}\" alt=\"#{text}\"></p>"
    end
  end

  private

  def base = @site.config["baseurl"]

  # Files have to be known before anything is rendered.
  def add_files(place)
    links = place.text.scan(LINK).flatten.map { |path| resolve(path, place) }
    links.each { |file| add_file(file, "/#{file.delete_prefix("docs/")}") unless file.end_with?(".md") }
    place.text.scan(SHOWN) { |_, name, _| show(name, place) }
  end

  def add_file(file, url)
    return if @urls.key?(file) || !File.file?(File.join(ROOT, file))

    @site.static_files << CheckoutFile.new(@site, file, url)
    @urls[file] = url
  end

  def show(name, place)
    file = MADE.map { |folder| "#{folder}/#{name}" }.find { |path| File.file?(File.join(ROOT, path)) } or
      raise Jekyll::Errors::FatalException, "#{place.file} shows #{name}, which bin/site does not make."

    add_file(file, "/examples/#{name}")
    @shown[name] = @urls.fetch(file)
  end

  def resolve(path, place) = File.expand_path(path, "/#{place.folder}").delete_prefix("/")

  def address(file, place)
    @urls.fetch(file) do
      raise Jekyll::Errors::FatalException, "#{place.file || place.title} links to #{file}, which the site does not " \
                                            "have; list it in docs/README.md."
    end
  end

  def frame(name)
    url = "#{base}#{@shown.fetch(name)}"
    title = File.basename(name, ".html").capitalize
    "<figure class=\"example\"><iframe src=\"#{url}\" title=\"#{title}, written by culet\" loading=\"lazy\"></iframe>" \
      "<figcaption><a href=\"#{url}\">Open this page alone</a></figcaption></figure>"
  end

  Jekyll::Hooks.register(:pages, :post_convert) do |page|
    next unless page.is_a?(Page)

    documents = page.site.generators.find { |one| one.is_a?(Documents) }
    page.content = documents.finish(page.content, page.place)
  end
end
