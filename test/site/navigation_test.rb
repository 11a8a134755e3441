# frozen_string_literal: true

require "test_helper"
require "docs/page"
require_relative "../../docs/site/examples"
require_relative "../../docs/site/navigation"

# Which documents the site shows, and where.
class NavigationTest < Minitest::Test
  # Documents of the site's own.
  PARTS = %r{\Adocs/site/(?!examples\.md)}

  def places = @places ||= Navigation.new(ROOT).places

  def test_every_document_has_a_place
    assert_empty Page.all.map(&:name).grep_v(PARTS) - places.map(&:file),
                 "docs/README.md does not list these documents, so the site does not show them"
  end

  def test_addresses_are_unique
    assert_empty places.group_by(&:url).select { |_, same| same.size > 1 }
    assert_equal "/", places.first.url
    assert_includes places.map(&:url), "/guide/puma/"
  end

  # The theme finds the pages below a group by its title.
  def test_titles_of_groups_are_unique
    parents = places.filter_map(&:parent).uniq
    assert_operator parents.size, :>=, 8
    assert_equal parents.sort, places.map(&:title).select { |title| parents.include?(title) }.sort
    places.each { |place| refute_nil place.title, place.file }
  end

  # Headings of the guide's index become groups, and the documents below them their pages.
  def test_a_document_stands_below_its_group
    puma = places.find { |place| place.file == "docs/guide/puma.md" }
    assert_equal ["Servers", "Puma", true], [puma.parent, puma.title, puma.listed]
    record = places.find { |place| place.file == "docs/decisions/reader.md" }
    assert_equal ["Decision records", false], [record.parent, record.listed]
    assert_nil places.find { |place| place.file == "docs/benchmarks.md" }.parent
  end

  def test_examples_are_written_by_the_commands_shown
    assert_operator Examples.names.size, :>=, 6
    Examples.names.each { |name| assert_includes Examples.blocks.join, "--#{File.extname(name).delete(".")} #{name}" }
  end

  # Pages and pictures that documents show are made when the site is built.
  def test_what_documents_show_is_made
    shown = places.flat_map { |place| place.text.scan(/^<!-- (?:page|picture): (\S+) /).flatten }
    charts = shown.grep(/\Abenchmarks-/)
    assert_operator charts.size, :>, 15
    assert_empty shown - charts - Examples.names
  end

  # The links of the site's own parts, which are no documents.
  def test_links_of_the_includes
    links = Dir["#{ROOT}/docs/site/_includes/*.html"].flat_map { |file| File.read(file).scan(%r{'(/[^'.]*)' \| relative_url}) }.flatten
    assert_operator links.size, :>, 6
    links.each do |link|
      url, anchor = link.split("#")
      place = places.find { |one| one.url == url }
      assert place, link
      assert_includes Page.new(place.file).anchors, anchor, link if anchor
    end
  end

  def test_a_failed_command_of_the_examples_is_shown
    folder = new_folder
    examples = Examples.new
    examples.define_singleton_method(:blocks) { ["echo nothing here >&2; exit 3\n"] }
    error = assert_raises(RuntimeError) { examples.make("#{folder}/pages") }
    assert_match(/failed \(3\):\necho nothing.*nothing here/m, error.message)
    refute_path_exists "#{folder}/pages"
  end
end
