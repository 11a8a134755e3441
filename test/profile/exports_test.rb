# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/tools/profile"
require_relative "stream_maker"

# The files of other tools.
class ProfileExportsTest < Minitest::Test
  APP = "/srv/shop/app/models/order.rb"

  def data
    maker = StreamMaker.new.mapping(0x1000, 0x2000, "/opt/none/libz.so")
    order = maker.ruby(APP, 12, "Order#items; all")
    main = maker.ruby("/srv/shop/bin/run", 3, "<main>")
    maker.site([0x1000, order, main], { "a" => [90, 400], "l" => [40, 400] }, labels: { "endpoint" => "orders#show" })
    maker.site([order, main], { "a" => [10, 40], "l" => [9, 40] }, kind: "o", type: "String")
    Culet::Profile::Data.new([Culet::Profile::Recording.new(maker.to_s, name: "shop")])
  end

  def test_collapsed
    lines = Culet::Profile::Collapsed.new(data, view: :live).to_s.lines(chomp: true)
    assert_equal 2, lines.size
    stack, bytes = lines.first.split
    assert_equal ["<main>_(/srv/shop/bin/run:3)", "Order#items_all_(#{APP}:12)", "[libz.so]"], stack.split(";")
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

  # Tables of a pprof file: strings, types, mappings, functions, locations, samples; each row is a message's fields.
  def tables(text)
    profile = decode(Zlib.gunzip(text))
    strings = profile[6].map { |name| name.force_encoding("UTF-8") }
    rows = ->(field) { profile[field].map { |row| decode(row) } }
    [profile, strings, rows]
  end

  def test_pprof
    text = Culet::Profile::Pprof.new(data).to_s
    assert_equal text, Culet::Profile::Pprof.new(data).to_s
    profile, strings, rows = tables(text)
    assert_equal "", strings.first
    types = rows.call(1).map { |one| [strings[one[1].first], strings[one[2].first]] }
    assert_equal [%w[alloc_objects count], %w[alloc_space bytes], %w[inuse_objects count], %w[inuse_space bytes]], types
    functions = rows.call(5).to_h { |fields| [fields[1].first, [strings[fields[2].first], strings[fields[4].first.to_i]]] }
    # The one of the library is left to go tool pprof.
    locations = rows.call(4).select { |fields| fields[4].any? }.to_h { |fields| [fields[1].first, decode(fields[4].first)] }
    sample = rows.call(2).first
    stack = numbers(sample[1].first).drop(1).map { |id| [functions[locations[id][1].first].first, locations[id][2].first] }
    assert_equal [["Order#items; all", 12], ["<main>", 3]], stack
    live = data.sites(:live).first
    allocated = data.sites(:allocated).first
    assert_equal [allocated.blocks.round, allocated.bytes.round, live.blocks.round, live.bytes.round], numbers(sample[2].first)
    label = decode(sample[3].first)
    assert_equal %w[endpoint orders#show], [strings[label[1].first], strings[label[2].first]]
    assert_equal [1_790_000_000_000_000_000, 30_500_000_000, 524_288], [profile[9], profile[10], profile[12]].map(&:first)
    assert_equal %w[space bytes], decode(profile[11].first).then { |one| [strings[one[1].first], strings[one[2].first]] }
    assert_equal ["shop", "in use: live", "culet #{Culet::VERSION}"], numbers(profile[13].first).map { |at| strings[at] }
    assert_equal "inuse_space", strings[profile[14].first]
  end

  # Two processes have one library at different addresses, and the second has another one where the first has it.
  def test_pprof_has_the_mappings_of_native_frames
    one = StreamMaker.new(pid: 1).mapping(0x5000_0000, 0x5000_3000, "/opt/app/none/main").mapping(0x7000_0000, 0x7000_8000, "/opt/app/none/liba.so", offset: 0x1000, build_id: "ab12")
    one.site([0x7000_0123], { "l" => [40, 400] })
    two = StreamMaker.new(pid: 2).mapping(0x6000_0000, 0x6000_8000, "/opt/app/none/liba.so", offset: 0x1000, build_id: "ab12").mapping(0x7000_4000, 0x7000_5000, "/opt/app/none/libb.so")
    two.site([0x6000_0123], { "l" => [10, 400] }).site([0x7000_4567], { "l" => [9, 400] }).site([0x7000_4999], { "l" => [3, 400] })
    data = Culet::Profile::Data.new([one, two].map { |maker| Culet::Profile::Recording.new(maker.to_s, name: "x") })
    assert_equal 2, data.sites(:live).size, "in a report, functions without names of one library are one"
    _, strings, rows = tables(Culet::Profile::Pprof.new(data).to_s)
    mappings = rows.call(3).map { |row| [row[1].first, row[2].first, row[3].first, row[4].first.to_i, strings[row[5].first], strings[row[6].first.to_i], row[7].first] }
    assert_equal [1, 0x5000_0000, 0x5000_3000, 0, "/opt/app/none/main", "", 1], mappings[0]
    assert_equal [2, 0x7000_0000, 0x7000_8000, 0x1000, "/opt/app/none/liba.so", "ab12", nil], mappings[1]
    assert_equal [3, 0x1000, 0, "/opt/app/none/libb.so"], mappings[2].values_at(0, 2, 3, 4).tap { |row| row[1] -= mappings[2][1] }
    assert_operator mappings[2][1], :>=, 0x7000_8000
    locations = rows.call(4).map { |row| [row[1].first, row[2].first, row[3].first - mappings[row[2].first - 1][1], row[4]] }
    assert_equal [[1, 2, 0x123, []], [2, 3, 0x567, []], [3, 3, 0x999, []]], locations
    assert_equal [50, 9, 3], rows.call(2).map { |row| (numbers(row[2].first)[3] / 524_288.0).round }
  end

  GO = %w[/usr/lib/go/bin/go go].find { |name| system(name, "version", out: File::NULL, err: File::NULL) }

  # What Debian's Go prints of a file.
  def go(folder, data, *options, **more)
    skip "there is no Go; install it with `apt-get install golang-go`" unless GO
    path = File.join(folder, "shop.pprof")
    File.binwrite(path, Culet::Profile::Pprof.new(data, **more).to_s)
    out, = assert_success(GO, "tool", "pprof", *options, path, env: TestHelper::NEUTRAL.merge("PPROF_TMPDIR" => folder))
    out
  end

  def test_go_reads_pprof
    folder = new_folder
    top = go(folder, data, "-top", "-sample_index=inuse_space")
    assert_match(/Order#items; all/, top)
    assert_match(/<main>/, top)
    assert_match(/^shop$/, go(folder, data, "-comments"))
    assert_match(/Type: alloc_space/, go(folder, data, "-tree", view: :allocated))
    assert_match(/endpoint: Total .*\n.*orders#show/, go(folder, data, "-tags"))
    raw = go(folder, Culet::Profile::Difference.new(data, data), "-raw")
    refute_match(/orders#show/, raw)
  end

  # A library that is here without its functions' names, and in Go's hands with them.
  def test_go_finds_names_by_addresses
    folder = new_folder
    library = build(folder)
    load = run_program("readelf", "-lW", library)[0].lines.find { |line| line.match?(/LOAD.* R E /) }.split[1, 5].map { |word| Integer(word, 16) }
    at = Integer(run_program("nm", library)[0][/^(\h+) T culet_probe$/, 1], 16)
    start = 0x7f12_3456_0000
    maker = StreamMaker.new.mapping(start + load[0], start + load[0] + load[3], library, offset: load[0])
    maker.site([start + at - load[1] + load[0] + 2], { "l" => [40, 400] })
    File.rename(library, "#{library}.away")
    data = Culet::Profile::Data.new([Culet::Profile::Recording.new(maker.to_s, name: "shop")])
    assert_equal ["[libprobe.so]"], data.sites(:live).first.frames.map(&:method)
    File.rename("#{library}.away", library)
    assert_match(/culet_probe/, go(folder, data, "-top", "-symbolize=local"))
    assert_match(/\[libprobe\.so\]/, go(folder, data, "-top", "-symbolize=none"))
  end

  def build(folder)
    source = "int culet_probe(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x; return s; }"
    compile_c(File.join(folder, "libprobe.so"), source, "-g", "-O1", "-fPIC", "-shared")
  end

  def test_speedscope
    document = JSON.parse(Culet::Profile::Speedscope.new(data, view: :live).to_s)
    assert_equal "https://www.speedscope.app/file-format-schema.json", document["$schema"]
    profile = document["profiles"].first
    assert_equal %w[sampled live bytes], profile.values_at("type", "name", "unit")
    assert_equal profile["samples"].size, profile["weights"].size
    assert_equal profile["weights"].sum, profile["endValue"]
    names = document["shared"]["frames"]
    assert_equal(["<main>", "Order#items; all", "[libz.so]"], profile["samples"].first.map { |at| names[at]["name"] })
    assert_equal([APP, 12], names.find { |one| one["name"].start_with?("Order") }.values_at("file", "line"))
  end

  # Rows are as many as the table says, and refer to rows that are there.
  def test_firefox
    document = JSON.parse(Culet::Profile::Firefox.new(data, view: :live).to_s)
    assert_equal [70, [0]], document["meta"].values_at("preprocessedProfileVersion", "initialSelectedThreads")
    assert_equal(%w[live allocated], document["threads"].map { |thread| thread["name"] })
    assert_equal [1, 2], document["threads"].map { |thread| thread["tid"] }
    shared = document["shared"]
    shared.except("stringArray").each do |name, table|
      table.each { |key, column| assert_equal(table["length"], column.size, "#{name}.#{key}") unless key == "length" }
    end
    allocations = document["threads"].first["nativeAllocations"]
    assert_equal ["bytes", 2, [0, 0]], allocations.values_at("weightType", "length", "time")
    assert_equal data.sites(:live).map { |site| site.bytes.round }, allocations["weight"]
    assert_equal ["[libz.so]", "Order#items; all", "<main>"], firefox_names(shared, allocations["stack"].first)
    assert_equal ["String", "Order#items; all", "<main>"], firefox_names(shared, allocations["stack"].last)
    sources = shared["sources"]["filename"].map { |at| shared["stringArray"][at] }
    assert_equal ["/srv/shop/bin/run", APP], sources
  end

  def firefox_names(shared, at)
    names = []
    loop do
      function = shared["frameTable"]["func"][shared["stackTable"]["frame"][at]]
      names << shared["stringArray"][shared["funcTable"]["name"][function]]
      offset = shared["stackTable"]["prefixOffset"][at]
      break names if offset.zero?

      at -= offset
    end
  end

  # A process without samples has no thread, and the largest one is shown first.
  def test_firefox_has_the_processes_with_samples
    recordings = [[1, nil], [2, 5], [3, 50]].map do |pid, samples|
      maker = StreamMaker.new(pid: pid)
      maker.site([maker.ruby(APP, 1, "x")], { "a" => [60, 400], "l" => [samples, 400] }) if samples
      Culet::Profile::Recording.new(maker.to_s, name: "process #{pid}")
    end
    document = JSON.parse(Culet::Profile::Firefox.new(Culet::Profile::Data.new(recordings)).to_s)
    assert_equal([%w[2 live], %w[2 allocated], %w[3 live], %w[3 allocated]], document["threads"].map { |thread| thread.values_at("pid", "name") })
    assert_equal [2], document["meta"]["initialSelectedThreads"]
    assert_equal([0, 1, 2, 3], document["meta"]["initialVisibleThreads"])
  end

  # The Breakpad id of a GNU build id, as dump_syms writes it.
  def test_firefox_has_the_libraries
    maker = StreamMaker.new.mapping(0x7000_0000, 0x7000_8000, "/opt/none/liba.so", build_id: "00112233445566778899aabbccddeeff00112233")
    maker.site([0x7000_0123], { "l" => [40, 400] })
    data = Culet::Profile::Data.new([Culet::Profile::Recording.new(maker.to_s, name: "x")])
    library = JSON.parse(Culet::Profile::Firefox.new(data).to_s)["libs"].first
    assert_equal ["liba.so", "/opt/none/liba.so", "33221100554477668899AABBCCDDEEFF0", "00112233445566778899aabbccddeeff00112233"], library.values_at("name", "path", "breakpadId", "codeId")
  end

  # A stack of the allocator's own functions alone, or none.
  def test_stacks_without_frames_have_a_name
    maker = StreamMaker.new.mapping(0x7000_0000, 0x7000_8000, "/opt/none/libculet.so")
    maker.site([0x7000_0123], { "a" => [1, 400], "l" => [40, 400] }).site([], { "l" => [40, 400] })
    data = Culet::Profile::Data.new([Culet::Profile::Recording.new(maker.to_s, name: "x")])
    assert_match(/\A\(unknown\) \d+\n\z/, Culet::Profile::Collapsed.new(data).to_s)
    assert_equal(["(unknown)"], JSON.parse(Culet::Profile::Speedscope.new(data).to_s)["shared"]["frames"].map { |frame| frame["name"] })
    _, strings, = tables(Culet::Profile::Pprof.new(data).to_s)
    assert_includes strings, "(unknown)"
  end
end
