# frozen_string_literal: true

require_relative "page_helper"
require "json"

# What the page of a profile contains, without a browser.
class ProfilePageTest < Minitest::Test
  include ProfilePageHelper

  HOSTILE = %(</script><script>alert(1)</script><!--\u2028"'&<img src=x onerror=alert(1)>)

  def test_stacks_sites_and_sums_are_those_of_the_profile
    data = small
    facts = facts(data)
    Culet::Profile::PageData::VIEWS.each do |view|
      columns = facts["views"][view.to_s]
      data.sites(view).each_with_index do |site, at|
        expected = site.frames.reverse.map(&:method)
        expected << site.class_name if site.class_name
        assert_equal expected, stack(facts, facts["sites"]["node"][columns["site"][at]])
        assert_in_epsilon site.bytes, columns["bytes"][at], 1e-5
        assert_in_epsilon site.variance, columns["variance"][at], 1e-5
        assert_equal site.samples, columns["samples"][at]
      end
    end
  end

  def test_parents_come_before_their_children
    parents = facts(large(300))["stacks"]["parent"]
    assert_equal(-1, parents[0])
    parents.drop(1).each.with_index(1) { |parent, node| assert_operator parent, :<, node }
  end

  def test_frames_have_a_kind
    kinds = { frame("A#b", "/srv/app/a.rb", 3) => 0, frame("B#c", "#{GEMS}/b-1.0/lib/b.rb", 3, gem: "b 1.0") => 1,
              frame("Set#add", "/usr/lib/ruby/3.1.0/set.rb", 3, gem: Culet::Origin::RUBY) => 2, frame("Array#map") => 2,
              frame("ar_set", library: "libruby-3.1.so.3.1.2") => 2, frame("sqlite3_exec", library: "libsqlite3.so.0") => 3,
              frame("(garbage collection)", remark: true) => 5, frame("??") => 5 }
    found = facts(Made.new({ live: [site(kinds.keys, 3, class_name: "String")] }))
    names = found["frames"]["method"].map { |at| found["strings"][at] }
    assert_equal kinds.transform_keys(&:method).merge("String" => 4), names.zip(found["frames"]["kind"]).to_h
  end

  def test_groups_and_labels
    found = facts(large(200))
    assert_equal ["line", "gem", "class", "library", "label endpoint", "label job"], found["groups"].map { |group| group["key"] }
    found["groups"].each { |group| assert_equal found["sites"]["node"].size, group["of"].size }
  end

  # Sites that are in both profiles have one number.
  def test_the_earlier_profile_shares_sites
    alone = facts(small)["sites"]["node"].size
    both = facts(small, base: small)
    assert_equal alone, both["sites"]["node"].size
    assert_equal both["views"], both["base_views"]
  end

  def test_hostile_names_stay_text
    frames = [frame(HOSTILE, "/srv/#{HOSTILE}.rb", 1, gem: HOSTILE), frame("x", library: HOSTILE)]
    data = Made.new({ live: [site(frames, 4, class_name: HOSTILE, labels: { HOSTILE => HOSTILE })] }, name: HOSTILE)
    page = Culet::Profile::Html.new(data, view: :live, base: data).to_s
    assert_equal 2, page.scan(%r{</script}i).size
    refute_includes page, "<img"
    refute_includes page, "alert(1)</script>"
    assert_includes page, ERB::Util.html_escape(HOSTILE)
    assert_includes facts(data)["strings"], HOSTILE
  end

  def test_the_page_loads_nothing
    page = Culet::Profile::Html.new(small, view: :growth).to_s
    assert_match(/default-src 'none'; script-src 'sha256-[^']+'; style-src 'unsafe-inline'; img-src data:/, page)
    refute_match(/(?:src|href)=["'](?!data:,)/, page)
    refute_match(%r{https?://}, page)
    assert_match(/value="growth" checked/, page)
  end

  def test_a_realistic_page_is_small
    page = Culet::Profile::Html.new(large(2000), view: :live).to_s
    assert_operator page.bytesize, :<, 600_000
  end

  private

  def facts(data, base: nil)
    JSON.parse(JSON.generate(Culet::Profile::PageData.new(data, view: :live, base: base).to_h))
  end

  # Names of the frames of a node, outermost first.
  def stack(facts, node)
    names = []
    while node.positive?
      names.unshift(facts["strings"][facts["frames"]["method"][facts["stacks"]["frame"][node]]])
      node = facts["stacks"]["parent"][node]
    end
    names
  end
end
