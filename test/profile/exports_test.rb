# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/tools/profile"
require_relative "stream_maker"

# The files of other tools.
class ProfileExportsTest < Minitest::Test
  APP = "/srv/shop/app/models/order.rb"

  def data
    maker = StreamMaker.new
    order = maker.ruby(APP, 12, "Order#items; all")
    main = maker.ruby("/srv/shop/bin/run", 3, "<main>")
    maker.site([0x1000, order, main], { "a" => [90, 400], "l" => [40, 400] }, labels: { "endpoint" => "orders#show" })
    maker.site([order, main], { "a" => [10, 40], "l" => [9, 40] }, kind: "o", type: "String")
    Culet::Profile::Data.new([Culet::Profile::Recording.parse(maker.to_s, name: "shop")])
  end

  def test_collapsed
    lines = Culet::Profile::Collapsed.new(data, view: :live).to_s.lines(chomp: true)
    assert_equal 2, lines.size
    stack, bytes = lines.first.split
    assert_equal ["<main>_(/srv/shop/bin/run:3)", "Order#items_all_(#{APP}:12)", "??"], stack.split(";")
    assert_equal data.sites(:live).first.bytes.round, Integer(bytes)
    assert_match(/;String \d+\z/, lines.last)
  end

  # The message again, by a reader of the test's own.
  def decode(text)
    fields = Hash.new { |hash, key| hash[key] = [] }
    at = 0
    varint = lambda do
      value = shift = 0
      loop do
        byte = text.getbyte(at)
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        break value if byte < 128
      end
    end
    while at < text.bytesize
      key = varint.call
      if (key & 7).zero? then fields[key >> 3] << varint.call
      else
        length = varint.call
        fields[key >> 3] << text.byteslice(at, length)
        at += length
      end
    end
    fields
  end

  def numbers(text) = text.b.each_char.slice_when { |byte, _| byte.ord < 128 }.map { |bytes| bytes.each_with_index.sum { |byte, at| (byte.ord & 127) << (7 * at) } }

  def test_pprof
    text = Culet::Profile::Pprof.new(data).to_s
    assert_equal text, Culet::Profile::Pprof.new(data).to_s
    profile = decode(Zlib.gunzip(text))
    strings = profile[6].map { |name| name.force_encoding("UTF-8") }
    assert_equal "", strings.first
    types = profile[1].map { |type| decode(type).then { |one| [strings[one[1].first], strings[one[2].first]] } }
    assert_equal [%w[alloc_objects count], %w[alloc_space bytes], %w[inuse_objects count], %w[inuse_space bytes]], types
    functions = profile[5].to_h { |one| decode(one).then { |fields| [fields[1].first, [strings[fields[2].first], strings[fields[4].first.to_i]]] } }
    locations = profile[4].to_h { |one| decode(one).then { |fields| [fields[1].first, decode(fields[4].first)] } }
    sample = decode(profile[2].first)
    stack = numbers(sample[1].first).map { |id| [functions[locations[id][1].first].first, locations[id][2].first] }
    assert_equal [["??", nil], ["Order#items; all", 12], ["<main>", 3]], stack
    live = data.sites(:live).first
    allocated = data.sites(:allocated).first
    assert_equal [allocated.blocks.round, allocated.bytes.round, live.blocks.round, live.bytes.round], numbers(sample[2].first)
    label = decode(sample[3].first)
    assert_equal %w[endpoint orders#show], [strings[label[1].first], strings[label[2].first]]
    assert_equal [1_790_000_000_000_000_000, 30_500_000_000, 524_288], [profile[9], profile[10], profile[12]].map(&:first)
    assert_equal "inuse_space", strings[profile[14].first]
  end

  # What Debian's Go reads in it.
  def test_go_reads_pprof
    go = %w[/usr/lib/go/bin/go go].find { |name| system(name, "version", out: File::NULL, err: File::NULL) } or skip "there is no Go"
    Dir.mktmpdir do |folder|
      path = File.join(folder, "shop.pprof")
      File.binwrite(path, Culet::Profile::Pprof.new(data).to_s)
      out, err, status = run_program(go, "tool", "pprof", "-top", "-sample_index=inuse_space", path)
      assert_predicate status, :success?, err
      assert_match(/Order#items; all/, out)
    end
  end

  def test_speedscope
    document = JSON.parse(Culet::Profile::Speedscope.new(data, view: :live).to_s)
    assert_equal "https://www.speedscope.app/file-format-schema.json", document["$schema"]
    profile = document["profiles"].first
    assert_equal %w[sampled live bytes], profile.values_at("type", "name", "unit")
    assert_equal profile["samples"].size, profile["weights"].size
    assert_equal profile["weights"].sum, profile["endValue"]
    names = document["shared"]["frames"]
    assert_equal(["<main>", "Order#items; all", "??"], profile["samples"].first.map { |at| names[at]["name"] })
    assert_equal([APP, 12], names.find { |one| one["name"].start_with?("Order") }.values_at("file", "line"))
  end

  def test_firefox
    document = JSON.parse(Culet::Profile::Firefox.new(data, view: :live).to_s)
    thread = document["threads"].first
    samples = thread["samples"]
    assert_equal ["bytes", 2, 2, 2], [samples["weightType"], samples["length"], samples["stack"].size, samples["weight"].size]
    %w[stackTable frameTable funcTable].each do |name|
      table = thread[name]
      table.each { |key, column| assert_equal(table["length"], column.size, "#{name}.#{key}") unless key == "length" }
    end
    names = []
    at = samples["stack"].first
    while at
      function = thread["frameTable"]["func"][thread["stackTable"]["frame"][at]]
      names << thread["stringArray"][thread["funcTable"]["name"][function]]
      at = thread["stackTable"]["prefix"][at]
    end
    assert_equal ["??", "Order#items; all", "<main>"], names
    thread["stackTable"]["prefix"].each_with_index { |prefix, index| assert_operator(prefix || -1, :<, index) }
  end
end
