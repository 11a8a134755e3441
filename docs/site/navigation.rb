# frozen_string_literal: true

# The documents of a checkout that the site shows, and where each one stands: the lists of docs/README.md make the
# navigation, one section a group. Needs no gem.
class Navigation
  # @!attribute file [String] path from the top of the checkout; nil for the page of a group
  # @!attribute url [String] on the site
  # @!attribute title [String] the document's first heading
  # @!attribute parent [String, nil] title of the group's page, or of the page above
  # @!attribute order [Integer] among those with the same parent
  # @!attribute listed [Boolean] whether the navigation lists it
  # @!attribute expands [Boolean] whether the navigation lists what is below it
  # @!attribute text [String] Markdown
  # @!attribute folder [String] what the links in the text are relative to
  Place = Struct.new(:file, :url, :title, :parent, :order, :listed, :expands, :text, :folder, keyword_init: true)

  INDEX = "docs/README.md"
  # Not in the list of the guide, as the public host shows it by itself.
  HOME = "README.md"
  # Documents above many of a kind: the pattern of those, and whether the navigation lists them.
  FAMILIES = { "ARCHITECTURE.md" => ["**/DESIGN.md", true],
               "docs/decisions/README.md" => ["docs/decisions/[a-z]*.md", false] }.freeze
  # Read from elsewhere, in no list.
  UNLISTED = %w[bench/README.md].freeze
  SECTION = /^## (?<title>.+)\n(?<text>(?:(?!^## ).*\n)*)/
  LINK = /\]\((?<file>[^)#\s]+\.md)/
  # In this section each document stands by itself.
  TOP_LEVEL = "Reference"
  private_constant :FAMILIES, :UNLISTED, :SECTION, :LINK, :TOP_LEVEL

  # @param root [String] of the checkout
  def initialize(root)
    @root = root
  end

  # @return [Array<Place>]
  def places
    @places ||= ([home] + groups + families + UNLISTED.map { |file| place(file, listed: false) })
                .each_with_index.map { |one, index| one.dup.tap { |place| place.order = index + 1 } }
  end

  # @param file [String]
  # @return [String] address on the site
  def url(file)
    case file
    when HOME then "/"
    when INDEX then "/guide/"
    when %r{(\A|/)DESIGN\.md\z} then "/design/#{File.dirname(file).delete_prefix("lib/culet/tools/").tr("/", "-")}/"
    when %r{(\A|/)README\.md\z} then "/#{File.dirname(file).delete_prefix("docs/")}/"
    else "/#{file.delete_prefix("docs/").delete_prefix("site/").delete_suffix(".md").downcase}/"
    end
  end

  private

  def home = place(HOME, title: "Home")

  def groups
    guide = place(INDEX, listed: false)
    [guide] + sections.flat_map do |title, text|
      documents = text.scan(LINK).flatten.map { |link| resolve(link) }.uniq
      next documents.map { |file| place(file) } if title == TOP_LEVEL

      page = Place.new(url: "/#{title.downcase.tr(" ", "-")}/", title: title, listed: true, expands: true,
                       text: "# #{title}\n#{text}", folder: File.dirname(INDEX))
      [page] + documents.map { |file| place(file, parent: title) }
    end
  end

  def families
    FAMILIES.flat_map do |parent, (pattern, listed)|
      files = Dir.glob(pattern, base: @root).sort.grep_v(%r{\A(?:tmp|pkg|site)/})
      files.map { |file| place(file, parent: heading(parent), listed: listed) }
    end
  end

  # @return [Array<Array(String, String)>] title and text
  def sections = read(INDEX).scan(SECTION)

  def resolve(link) = File.expand_path(link, "/#{File.dirname(INDEX)}").delete_prefix("/")

  def place(file, title: heading(file), parent: nil, listed: true)
    Place.new(file: file, url: url(file), title: title, parent: parent, listed: listed,
              expands: FAMILIES.fetch(file, [nil, false]).last, text: read(file), folder: File.dirname(file))
  end

  def heading(file) = read(file)[/^# (.+)/, 1]

  def read(file) = File.read(File.join(@root, file), encoding: Encoding::UTF_8)
end
