# frozen_string_literal: true

require_relative "strings_helper"
require "zlib"

# Files that ObjectSpace wrote, and files that it did not.
class StringsDumpTest < Minitest::Test
  include StringsHelper

  SCRIPT = <<~'RUBY'
    $words = Array.new(2000) { |i| "word number #{i % 100} of the dictionary" }
    $escaped = Array.new(50) { |i| "line \"#{i % 5}\"\n\tand \\ another, with an ä and a \u2028 in it" }
    $paths = Array.new(300) { |i| ("/srv/app/lib/library/concerns/part_#{i}/of_the_whole.rb" + "").freeze }
    $ends = Array.new(300) { |i| "library/concerns/part_#{i}/of_the_whole.rb" + "" }
    $binary = Array.new(5) { "\xff\xfe".b * 40 }
    $shared = Array.new(20) { $paths.first[5..] }
  RUBY

  # What stands in the dump, by a parser of JSON and nothing else.
  def plainly(path)
    strings = File.foreach(path).map { |text| JSON.parse(text) }.select { |one| one["type"] == "STRING" }
    roots = strings.filter_map { |one| one["references"]&.first if one["shared"] }.uniq
    told = strings.select { |one| one["value"] || one["bytesize"]&.zero? }
    groups = told.group_by { |one| one.values_at("value", "class", "encoding") }.values
    gains = groups.map do |all|
      buffers, others = all.partition { |one| roots.include?(one["address"]) && !one["fstring"] }
      kept = [others.find { |one| one["fstring"] } || others.min_by { |one| one["memsize"] },
              others.any? ? buffers.first : buffers.min_by { |one| one["memsize"] }].compact
      copies = all - kept
      [copies.size, copies.sum { |one| one["memsize"] }]
    end
    { strings: strings.size, bytes: strings.sum { |one| one["memsize"] }, copies: gains.sum(&:first),
      gain: gains.sum(&:last), shared: strings.count { |one| one["shared"] },
      interned: strings.count { |one| one["fstring"] }, untold: strings.size - told.size }
  end

  def read(path, **options) = Culet::Strings.findings(Culet::Strings::Dump.new(path), top: 20, **options)

  def test_what_is_found_is_what_stands_in_the_dump
    with_real_dump(SCRIPT) do |path|
      found = read(path)
      told = { strings: found.strings, bytes: found.string_bytes, copies: found.copies, gain: found.duplicate_bytes, shared: found.places["shared"].count,
               interned: found.interned.count, untold: found.untold.count }
      assert_equal plainly(path), told
      assert_operator found.suffixes, :>=, 299
      assert_equal [], found.source.problems
      assert_equal File.foreach(path).count, found.source.lines
    end
  end

  # White space may be anywhere, as in any JSON.
  def test_other_forms_of_json_are_read_alike
    with_real_dump(SCRIPT) do |path|
      expected = figures(read(path))
      spaced = File.foreach(path).map { |text| "#{JSON.generate(JSON.parse(text), space: " ")}\n" }.join
      File.write(path, spaced)
      assert_equal expected, figures(read(path))
    end
  end

  def figures(found) = [found.strings, found.string_bytes, found.asked_bytes, found.duplicate_bytes, found.suffix_bytes, found.roots.count, found.untold.count]

  def test_who_allocated_them_is_told_when_it_was_traced
    with_real_dump("def make = Array.new(500) { +'a text of which there are five hundred' + '' }\n$kept = make", tracing: true) do |path|
      site = read(path).groups.first.sites.first
      assert_match(/\A-e:2\z/, site.first)
      assert_equal 500, site.last # the one that stays is the literal
    end
  end

  def test_a_packed_one_is_read_too
    with_real_dump(SCRIPT) do |path|
      expected = figures(read(path))
      Zlib::GzipWriter.open("#{path}.gz") { |packed| packed.write(File.binread(path)) }
      assert_equal expected, figures(read("#{path}.gz"))
      File.truncate("#{path}.gz", File.size("#{path}.gz") / 2)
      half = read("#{path}.gz")
      assert_operator half.strings, :<, expected.first
      assert_match(/cannot be unpacked beyond line \d+: .*; the part before was read/, half.source.problems.last(2).join(" "))
    end
  end

  def test_one_that_is_cut_off_is_read_up_to_there
    whole = dump("a text that is there twice, cut off or not", "a text that is there twice, cut off or not", "and another one")
    found = findings(whole[0..-30])
    assert_equal 3, found.strings
    assert_match(/\A\S+ is truncated in line 6, after \d+ bytes; the part before was read\z/, found.source.problems.join)
    assert_empty findings(whole.chomp).source.problems, "the last line's end alone is no loss"
  end

  def test_lines_that_are_broken_are_counted
    good = line(0x10000, "one text") + line(0x10028, "two texts")
    found = findings(good + (%({"address":"0x1", "type":"STRING", "value":"\n) * 5) + line(0x10050, "three"))
    assert_equal 3, found.strings
    assert_equal ["line 3 of", "line 4 of", "line 5 of", "and 2 more damaged lines were skipped"],
                 found.source.problems.map { |one| one[/\Aline \d+ of|\Aand.*/] }
  end

  def test_lines_with_figures_and_addresses_that_cannot_be_are_passed_over
    good = line(0x10000, "one text") + line(0x10028, "two texts")
    [{ bytesize: 1 << 64 }, { bytesize: 1 << 62 }, { memsize: 10**30 }, { memsize: -1 }, { memsize: 1.5 }, { memsize: nil.to_a },
     { slot_size: 1 << 40 }, { line: "7" }, { class: "\u0000" },
     { address: "0x1\u0000" }, { address: 7 }, { address: "0x#{"1" * 17}" }, { class: {} }].each do |fields|
      [good + line(0x10050, "three", **fields), good + line(0x10050, "three \" with an escape", **fields)].each do |text|
        found = findings(text)
        assert_equal 2, found.strings, fields.inspect
        assert_match(/\Aline 3 of \S+ is no line of a dump and was skipped\z/, found.source.problems.join, fields.inspect)
      end
    end
  end

  # Packed, it is a thousandth of its size.
  def test_one_endless_line_takes_no_memory
    in_directory do |folder|
      { "heap.json.gz" => 1, "later.json.gz" => 2 }.each do |name, number|
        path = File.join(folder, name)
        Zlib::GzipWriter.open(path, Zlib::BEST_SPEED) do |packed|
          packed.write(number == 1 ? '{"address":"0x1", "value":"' : "#{line(0x10000, "one")}{")
          block = "a" * (1 << 20)
          200.times { packed.write(block) }
          packed.write("\n#{line(0x10028, "two")}")
        end
        script = "require 'culet/cli'; status = Culet::CLI.run(['strings', ARGV.first]); " \
                 "puts File.read('/proc/self/status')[/VmHWM:\\s+(\\d+)/, 1].to_i / 1024; exit status"
        out, err, status = run_program(RbConfig.ruby, "-I#{TestHelper::ROOT}/lib", "-r#{TestHelper::ROOT}/bin/gems.rb", "-e", script, path, env: TestHelper::NEUTRAL)
        assert_operator out.lines.last.to_i, :<, 220, "MiB"
        next assert_equal([1, "culet: #{path} is no dump"], [status.exitstatus, err[/\A.* is no dump/]]) if number == 1

        assert_equal [0, ""], [status.exitstatus, err]
        assert_match(/line 2 of \S+ is no line of a dump and was skipped/, out.gsub(/\s+/, " "))
      end
    end
  end

  def test_what_is_no_dump_is_said
    { "" => /is empty/, "\x00\xff\x13".b * 5000 => /is no dump of Ruby's objects; make one with ObjectSpace\.dump_all/,
      "hello\nworld\n" => /is no dump/, "[1, 2]\n" => /is no dump/,
      "{\"some\":\"thing\"}\n" => /is no dump/, "\x1f\x8bnonsense".b => /cannot be unpacked/ }.each do |content, sentence|
      in_directory do |folder|
        File.binwrite(File.join(folder, "heap.json"), content)
        assert_sentence(sentence, "strings", File.join(folder, "heap.json"))
      end
    end
    assert_sentence(/there is no file/, "strings", "/nonexistent/heap.json")
    assert_sentence(/is a directory/, "strings", "/tmp")
  end

  def test_nothing_is_left_behind
    folder = new_folder
    path = File.join(folder, "heap.json")
    File.write(path, dump("one", "two"))
    _, err, status = run_culet("strings", path, env: TestHelper::NEUTRAL.merge("TMPDIR" => folder))
    assert_equal [true, ""], [status.success?, err]
    assert_equal ["heap.json"], Dir.children(folder)
  end

  # An entry for each string, and a window of the file: less than the strings hold.
  def test_memory_stays_below_the_size_of_the_strings
    folder = new_folder
    path = File.join(folder, "heap.json")
    frame = line(0x10000, "TEXT", embedded: nil, bytesize: 150, memsize: 191, frozen: true)
    File.open(path, "w") do |file|
      400_000.times do |index|
        file.write(frame.sub("TEXT") { format("/srv/app/lib/library/part_%06d/%s%08d.rb", index, "of_the_whole_" * 8, index % 1000) })
      end
    end
    script = "require 'culet/tools/strings'; peak = -> { File.read('/proc/self/status')[/VmHWM:\\s+(\\d+)/, 1].to_i * 1024 }; before = peak.call; " \
             "found = Culet::Strings.findings(Culet::Strings::Dump.new(ARGV.first), top: 10); " \
             "puts JSON.generate([peak.call - before, found.string_bytes, found.strings])"
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-e", script, path, env: TestHelper::NEUTRAL)
    assert_equal [true, ""], [status.success?, err]
    taken, held, strings = JSON.parse(out)
    assert_equal 400_000, strings
    assert_operator taken, :<, held
  end
end
