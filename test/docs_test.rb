# frozen_string_literal: true

require "test_helper"
require "culet/cli"

# The documents name files, sections and options that exist.
class DocsTest < Minitest::Test
  DOCUMENTS = %w[README.md DESIGN.md CHANGELOG.md docs/benchmarks.md docs/json.md].freeze
  # Paths as the documents write them, from the top of the checkout; a star stands for the rest of a name.
  PATH = %r{`((?:allocator|bench|bin|calls|docs|ext|lib|scope|trace|workloads)/[\w./*-]+)`}
  COMMAND = /\bculet (#{Culet::CLI::VERBS.keys.join("|")})\b([^`\n#|]*)/
  private_constant :DOCUMENTS, :PATH, :COMMAND

  DOCUMENTS.each do |name|
    define_method(:"test_links_of_#{name}") do
      links = text(name).scan(/\]\(([^)\s]+)\)/).flatten.grep_v(/\Ahttps?:/)
      refute_empty links if name == "README.md"
      wrong = links.reject { |link| leads?(link, name) }
      assert_empty wrong, "#{name} links to what is not there"
    end

    define_method(:"test_files_that_#{name}_names") do
      missing = text(name).scan(PATH).flatten.uniq.reject { |path| Dir[File.join(ROOT, path)].any? || Dir[File.join(ROOT, "#{path}.*")].any? }
      assert_empty missing, "#{name} names files that are not there"
    end
  end

  def test_options_that_the_readme_shows
    shown = text("README.md").scan(COMMAND).flat_map { |verb, words| options(verb, words) }.uniq
    assert_operator shown.size, :>, 20
    unknown = shown.reject { |verb, option| help(verb).match?(/(?<![\w-])#{Regexp.escape(option)}(?![\w-])/) }
    assert_empty unknown, "README.md shows options that do not exist"
  end

  private

  def text(name) = File.read(File.join(ROOT, name), encoding: Encoding::UTF_8)

  def leads?(link, from)
    path, section = link.split("#", 2)
    target = path.empty? ? from : File.join(File.dirname(from), path)
    return false unless File.exist?(File.join(ROOT, target))

    section.nil? || sections(target).include?(section)
  end

  # What headings are called in links.
  def sections(name)
    text(name).gsub(/^```.*?^```/m, "").scan(/^#+ (.*)/).flatten.map { |heading| heading.downcase.gsub(/[^\p{Word}\- ]/, "").tr(" ", "-") }
  end

  # Of the verb's own words, which end where those of the command that it runs begin.
  def options(verb, words) = words.split(/ -- | -- ?\z|\.\.\. |;|&/).first.to_s.scan(/(?<=\s)--[a-z][a-z-]*/).map { |option| [verb, option] }

  def help(verb)
    @help ||= Hash.new { |texts, word| texts[word] = helps(word).map { |words| run_culet(*words, "--help").first }.join }
    @help[verb]
  end

  # Verbs that have another help for a part of theirs.
  def helps(verb) = { "cow" => [%w[cow], %w[cow experiment]], "require" => [%w[require], %w[require --unused]] }.fetch(verb, [[verb]])
end
