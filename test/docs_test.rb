# frozen_string_literal: true

require "test_helper"
require "culet/cli"
require_relative "docs/page"

# The documents name links, files, verbs and options that exist, and keep to their lengths.
class DocsTest < Minitest::Test
  # Paths as the documents write them, from the top of the checkout; a star stands for the rest of a name.
  PATH = %r{`((?:allocator|bench|bin|boot|docs|ext|lib|reader|replay|sampler|workloads)/[\w./*-]+)`}
  # A word that stands for a name of the reader's.
  PLACEHOLDER = /\b(?:NAME|VERB|FAMILY|FILE|PART)\b/
  COMMAND = /\bculet (#{Culet::CLI::VERBS.keys.join("|")})\b([^`\n#|]*)/
  # Verbs that have another help for a part of theirs.
  HELPS = { "cow" => [%w[cow], %w[cow experiment]], "requires" => [%w[requires], %w[requires --unused]] }.freeze
  MOST_LINES = { "README.md" => 150, "ARCHITECTURE.md" => 200 }.freeze
  MOST_LINES_OF_DESIGN = 300
  MOST_COLUMNS = 120
  # Decision records and the changelog speak of files that are gone.
  HISTORY = %r{\A(?:CHANGELOG\.md|docs/decisions/)}
  # Variables that culet sets for the programs it starts are no settings.
  INTERNAL = /\ACULET_(?:COMPARE_RUN|COW_\w+|REQUIRES\w*|AT_EXIT|TRACE\w*|WORKLOAD_DIR|SCALE|INHERITED|UNUSED)\z/
  private_constant :PATH, :PLACEHOLDER, :COMMAND, :HELPS, :MOST_LINES, :MOST_LINES_OF_DESIGN, :MOST_COLUMNS, :HISTORY,
                   :INTERNAL

  Page.all.each do |page|
    define_method(:"test_links_of_#{page.name}") do
      assert_empty page.links.reject { |link| page.leads?(link) }, "#{page.name} has dead links"
    end

    next if HISTORY.match?(page.name)

    define_method(:"test_files_that_#{page.name}_names") do
      paths = page.text.scan(PATH).flatten.uniq.grep_v(PLACEHOLDER)
      missing = paths.reject { |path| Dir[File.join(ROOT, "#{path}{,.*,-*}")].any? }
      assert_empty missing, "#{page.name} names files that are not there"
    end
  end

  def test_lengths
    long = Page.all.reject { |page| page.lines <= most_lines(page.name) }
    assert_empty long.map { |page| "#{page.name}: #{page.lines} lines" }, "documents are longer than they may be"
  end

  # Tables, links and output cannot be wrapped.
  def test_widths_of_the_guide
    wide = user_pages.to_h do |page|
      lines = page.text.gsub(/^```text.*?^```/m, "").lines(chomp: true)
      [page.name, lines.grep_v(/^\||\]\(http/).select { |line| line.size > MOST_COLUMNS }]
    end
    assert_empty wide.reject { |_, lines| lines.empty? }, "lines are wider than #{MOST_COLUMNS} columns"
  end

  def test_every_page_of_the_guide_is_listed
    listed = Page.new("docs/README.md").links.map { |link| "docs/#{link}" }
    missing = user_pages.map(&:name) - listed - ["README.md"]
    assert_empty missing, "docs/README.md does not list these pages"
  end

  # Each part has one page of decisions, with one table.
  def test_pages_of_decisions
    index = Page.new("docs/decisions/README.md")
    pages = Page.all.select { |page| page.name.start_with?("docs/decisions/") && page.name != index.name }
    assert_equal pages.map { |page| File.basename(page.name) }.sort, index.links.grep_v(%r{/}).sort
    pages.each { |page| assert_equal 1, page.text.scan(/^\| Tried \| Measured \| Outcome and reason \|$/).size, page.name }
  end

  # All others are drawn when the site is built.
  def test_pictures_in_the_checkout
    assert_equal %w[images/live.png images/memory.svg],
                 Dir.glob("**/*.{png,svg}", base: File.join(ROOT, "docs")).grep_v(%r{\Asite/assets/}).sort
  end

  def test_options_that_the_guide_shows
    commands = user_pages.flat_map { |page| page.text.scan(COMMAND) }
    shown = commands.flat_map { |verb, words| options(words).map { |option| [verb, option] } }.uniq
    assert_operator shown.size, :>, 40
    unknown = shown.reject { |verb, option| help(verb).match?(/(?<![\w-])#{Regexp.escape(option)}(?![\w-])/) }
    assert_empty unknown, "the guide shows options that do not exist"
  end

  # What the program reads and what the page of settings lists are the same.
  def test_every_environment_variable_is_described
    described = Page.new("docs/guide/settings.md").text.scan(/`(CULET_[A-Z_]+)/).flatten.uniq.sort
    assert_equal environment_variables, described
  end

  private

  def user_pages = Page.all.select { |page| page.name == "README.md" || page.name.start_with?("docs/guide/") }

  def most_lines(name)
    MOST_LINES.fetch(name) { name.end_with?("DESIGN.md") ? MOST_LINES_OF_DESIGN : Float::INFINITY }
  end

  # Of the verb's own words, which end where those of the command that it runs begin.
  def options(words) = words.split(/ -- | -- ?\z|\.\.\. |;|&/).first.to_s.scan(/(?<=\s)--[a-z][a-z-]*/)

  def help(verb)
    @help ||= Hash.new do |texts, word|
      texts[word] = HELPS.fetch(word, [[word]]).map { |words| run_culet(*words, "--help").first }.join
    end
    @help[verb]
  end

  def environment_variables
    ruby = sources("{lib,boot/lib}/**/*.rb").scan(/"(CULET_[A-Z_]+)"/)
    native = sources("{allocator/src,ext/culet,boot/ext}/**/*.c").scan(/"(CULET_[A-Z_]+)(?:=\w*)?"/)
    (ruby + native).flatten.uniq.grep_v(INTERNAL).sort
  end

  def sources(pattern) = Dir[File.join(ROOT, pattern)].map { |path| File.read(path, encoding: Encoding::UTF_8) }.join
end
