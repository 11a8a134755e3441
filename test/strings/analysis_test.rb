# frozen_string_literal: true

require_relative "strings_helper"

# What is found in dumps of which every line is known.
class StringsAnalysisTest < Minitest::Test
  include StringsHelper

  def test_sums_by_where_the_bytes_lie
    text = "x" * 100
    found = findings(line(0x10000, "short") + line(0x10028, text) +
                     line(0x10050, nil, shared: true, bytesize: nil, embedded: nil, memsize: 40, references: ["0x10028"]) +
                     line(0x10078, "y" * 50, memsize: 40) + line(0x100a0, "z" * 30, memsize: 140))
    assert_equal({ "embedded" => 1, "own" => 2, "shared" => 1, "nofree" => 1 }, found.places.transform_values(&:count))
    assert_equal [5, 40 + 141 + 40 + 40 + 140], [found.strings, found.string_bytes]
    assert_equal [5 + 100 + 50 + 30, 140 - 40 - 31], [found.asked_bytes, found.capacity_slack_bytes]
    assert_equal [1, 100, 1], [found.roots.count, found.roots.asked_bytes, found.untold.count]
    assert_equal([[1, "\"#{"x" * 60}\"..."]], found.shared_with.map { |root| [root.count, root.owner.text] })
  end

  # Up to 3.1 a slot has 23 bytes for text, later 15 of 40 and more of larger ones.
  def test_slack_of_slots_is_told_by_how_much_fits
    assert_equal 23 - 3, findings(line(0x10000, "abc") + line(0x10028, "a" * 23)).slot_slack_bytes
    found = findings(line(0x10000, "abc", slot_size: 40) + line(0x10028, "a" * 42, embedded: true, memsize: 80, slot_size: 80))
    assert_equal (15 - 3) + (55 - 42), found.slot_slack_bytes
  end

  def test_of_equal_strings_all_but_one_would_go
    found = findings(dump(*["the text that is there three times"] * 3, "once, and no other string is like it", "ab", "ab"))
    held = 41 + "the text that is there three times".bytesize
    assert_equal [(2 * held) + 40, 3], [found.duplicate_bytes, found.copies]
    assert_equal [["duplicate", 3, 3 * held, 2 * held], ["duplicate", 2, 80, 40]],
                 found.groups.map { |one| [one.kind, one.count, one.held_bytes, one.gain_bytes] }
  end

  def test_what_differs_in_class_or_encoding_is_not_equal
    text = "one text in several clothes, too long for a slot"
    found = findings(line(0x10000, text) + line(0x10028, text, class: "0x2000") + line(0x10050, text, encoding: "US-ASCII"))
    assert_equal [0, 0], [found.duplicate_bytes, found.copies]
  end

  def test_the_interned_one_stays_and_a_root_is_no_copy
    text = "a literal that is interned, and copies of it"
    held = 41 + text.bytesize
    interned = line(0x10000, text, frozen: true, fstring: true)
    found = findings(interned + line(0x10028, text) + line(0x10050, text))
    assert_equal 2 * held, found.duplicate_bytes
    assert_match(/one of them is interned/, found.groups.first.remedy)

    root = line(0x10000, text, frozen: true)
    lying_in_it = line(0x10028, nil, shared: true, embedded: nil, memsize: 40, bytesize: nil, references: ["0x10000"])
    assert_equal [0, 1], [findings(root + lying_in_it + line(0x10050, text)).duplicate_bytes, findings(root + lying_in_it).roots.count]
  end

  def test_of_equal_roots_one_stays
    text = "a text that lies in two buffers, each of which another string uses"
    held = 41 + text.bytesize
    roots = line(0x10000, text, frozen: true) + line(0x10028, text, frozen: true)
    users = [[0x10050, "0x10000"], [0x10078, "0x10028"]].map do |address, root|
      line(address, text[0, 30], shared: true, embedded: nil, memsize: 40, bytesize: 30, references: [root])
    end
    found = findings(roots + users.join)
    assert_equal [2, held + 40], [found.copies, found.duplicate_bytes]
  end

  def test_an_end_could_lie_in_the_longer_ones_buffer
    whole = "/srv/app/lib/library/concerns/of_the_whole.rb"
    part = "library/concerns/of_the_whole.rb"
    found = findings(line(0x10000, whole, frozen: true) + line(0x10028, part))
    assert_equal [0, part.bytesize + 1, 1], [found.duplicate_bytes, found.suffix_bytes, found.suffixes]
    assert_equal ["suffix", whole.inspect, [part.inspect]], found.groups.first.then { |one| [one.kind, one.kept.text, one.parts.map(&:text)] }
  end

  def test_what_would_gain_nothing_is_no_end
    whole = "/srv/app/lib/library/concerns/of_the_whole.rb"
    part = "library/concerns/of_the_whole.rb"
    frozen = line(0x10000, whole, frozen: true)
    assert_equal 0, findings(frozen + line(0x10028, "of_the_whole.rb")).suffix_bytes, "it fits into the smallest slot"
    assert_equal 0, findings(frozen + line(0x10028, part, frozen: true, fstring: true)).suffix_bytes, "Ruby gives interned ones a buffer of their own"
    assert_equal 0, findings(line(0x10000, whole) + line(0x10028, part)).suffix_bytes, "an unfrozen one would have to get a root, which costs a slot"
    assert_equal 0, findings(frozen + line(0x10028, whole[0..-2])).suffix_bytes, "only ends are shared"
  end

  # From Ruby 3.2 on a text that lies in a larger slot would do with the smallest.
  def test_an_end_in_a_larger_slot
    whole = "/srv/app/lib/library/concerns/of_the_whole.rb"
    part = "library/concerns/of_the_whole.rb"
    found = findings(line(0x10000, whole, frozen: true, embedded: true, memsize: 80, slot_size: 80) +
                     line(0x10050, part, embedded: true, memsize: 80, slot_size: 80) + line(0x100a0, "short", slot_size: 40))
    assert_equal 40, found.suffix_bytes
  end

  # Many strings of few letters, so that all relations occur, against the plain definition.
  def test_ends_and_duplicates_of_many_strings_are_those_of_the_definition
    random = Random.new(11)
    letters = %w[a b]
    texts = Array.new(900) { Array.new(24 + random.rand(9)) { letters[random.rand(2)] }.join }
    texts.concat(texts.first(300).map { |text| Array.new(1 + random.rand(6)) { letters[random.rand(2)] }.join + text })
    found = findings(texts.each_with_index.map { |text, index| line(0x10000 + (index * 40), text, frozen: true) }.join, top: 5)
    once = texts.uniq
    ends = once.select { |text| once.any? { |other| other.size > text.size && other.end_with?(text) } }
    assert_operator ends.size, :>, 250
    assert_equal [texts.size - once.size, texts.sum { |text| 41 + text.size } - once.sum { |text| 41 + text.size }], [found.copies, found.duplicate_bytes]
    assert_equal [ends.size, ends.sum { |text| text.size + 1 }], [found.suffixes, found.suffix_bytes]
  end

  def test_sorting_bears_what_sorting_is_bad_at
    texts = Array.new(3000) { |index| "a" * (24 + (index % 500)) }
    found = findings(texts.each_with_index.map { |text, index| line(0x10000 + (index * 40), text, frozen: true) }.join)
    assert_equal [2500, 499], [found.copies, found.suffixes]
  end

  def test_gems_and_files_by_gain
    text = "a text that is there twice, from two files of one gem"
    at = ->(file, number) { { file: "/gems/ruby/gems/rack-3.1.8/lib/#{file}.rb", line: number } }
    found = findings(line(0x10000, text, **at.call("one", 3)) + line(0x10028, text, **at.call("one", 3)) + line(0x10050, text, **at.call("two", 7)) +
                     line(0x10078, "of the program, and of nobody else", file: "app.rb", line: 1))
    assert_equal [["rack 3.1.8", 3, 2], ["the program", 1, 0]], found.gems.map { |one| [one.name, one.strings, one.copies] }
    assert_equal found.duplicate_bytes, found.gems.sum(&:gain_bytes)
    sites = ["/gems/ruby/gems/rack-3.1.8/lib/one.rb:3", "/gems/ruby/gems/rack-3.1.8/lib/two.rb:7"]
    assert_equal sites.first(found.groups.first.sites.size), found.groups.first.sites.map(&:first).sort
  end

  def test_gains_by_site_add_up_where_roots_cost
    whole = "/srv/app/lib/library/concerns/of_the_whole_program_and_of_all_its_parts.rb"
    site = { file: "app.rb", line: 1 }
    found = findings(line(0x10000, whole, **site) + line(0x10028, whole[9..], **site) + line(0x10050, whole[13..], **site))
    assert_operator found.suffix_bytes, :>, 0
    assert_equal found.suffix_bytes, found.files.sum(&:gain_bytes)
  end

  def test_where_there_is_nothing_to_gain_that_is_the_verdict
    found = findings(dump("one", "two", "three of them, all different from each other"))
    refute_predicate Culet::Strings::Verdicts.new(found), :worth?
    assert_equal "nothing to gain", Culet::Strings::Verdicts.new(found).list.first.topic
    assert_match(/sharing would save 0 bytes of /, Culet::Strings::Verdicts.new(found).list.first.text)
  end

  def test_without_content_no_text_is_told
    text = "secret: 0x5eC4e7 and more of it"
    found = findings(dump(text, text), content: false)
    assert_equal 41 + text.bytesize, found.duplicate_bytes
    assert_match(/\A#{text.bytesize} bytes #\h{8}\z/, found.groups.first.kept.to_s)
  end

  # Rows that show no text are told apart all the same, by marks that cannot be looked up.
  def test_without_content_strings_of_one_length_differ
    texts = Array.new(20) { |number| "a secret of one length, number #{number.to_s.rjust(4, "0")}" }
    shown = Array.new(2) { findings(dump(*texts, *texts), content: false).groups.map { |group| group.kept.to_s } }
    assert_equal [20, 20], shown.map { |rows| rows.uniq.size }
    assert_empty shown.first & shown.last
    refute_match(/secret/, shown.join)
  end

  def test_texts_are_cut_and_escaped
    found = findings(dump(*["\e[31mred\n\u0000\u202e#{"ä" * 300}"] * 2))
    assert_equal "\"\\e[31mred\\n\\u0000\\u202E#{"ä" * 37}\"...", found.groups.first.kept.text
  end

  # The process that is read has the file, too.
  { "duplicates" => "add_entry", "ends" => "culet_strings_group_suffixes", "groups" => "culet_top_groups_sort" }.each do |what, function|
    define_method(:"test_a_file_that_is_damaged_before_#{what}") { assert_equal "the temporary file of strings is damaged", damaged_at(function) }
  end

  private

  # @return [String] the message of an analysis whose file is damaged as it enters the function
  def damaged_at(function)
    folder = new_folder
    File.write("#{folder}/heap.json", dump(*(["a string that has a buffer"] * 2), *(["another with as many bytes"] * 2)))
    File.write("#{folder}/program.rb", <<~RUBY)
      require "culet/tools/strings"
      file = File.open("#{folder}/records", "w+b")
      Culet::Strings::Dump.new("#{folder}/heap.json").read(Culet::Strings::RecordFile.new(file))
      file.flush
      Culet::Strings.send(:analyse, file.path, 5, true) rescue puts($!.message)
    RUBY
    damage = "#{RbConfig.ruby} --disable-gems -e 'File.binwrite(ARGV[0], 255.chr * 9, File.size(ARGV[0]) / 2)' #{folder}/records"
    out, err = assert_success("gdb", "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "break #{function}", "-ex", "run", "-ex", "shell #{damage}",
                              "-ex", "delete", "-ex", "continue", "--args", RbConfig.ruby, "-I#{ROOT}/lib", "#{folder}/program.rb")
    out[/.*(?:file of strings|memory).*/] || flunk(out + err)
  end
end
