# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/tools/profile"
require_relative "stream_maker"

# Streams, and what is made of them.
class ProfileModelTest < Minitest::Test
  APP = "/srv/shop/app/models/order.rb"
  GEM = "/usr/lib/ruby/gems/3.3.0/gems/rack-3.0.8/lib/rack/handler.rb"

  def parse(maker, name: "shop") = Culet::Profile::Recording.new(maker.to_s, name: name)

  def data(*makers) = Culet::Profile::Data.new(makers.each_with_index.map { |maker, at| parse(maker, name: "process #{at}") })

  def shop(**options)
    maker = StreamMaker.new(**options).mapping(0x1000, 0x2000, "/opt/none/libz.so")
    order = maker.ruby(APP, 12, "Order#items")
    call = maker.ruby(GEM, 30, "Rack::Handler#call")
    maker.site([0x1000, order, call], { "a" => [90, 400], "l" => [40, 400], "g" => [12, 400] }, labels: { "endpoint" => "orders#show" })
    maker.site([order, call], { "a" => [10, 40], "l" => [9, 40] }, kind: "o", type: "String")
    maker.site([call], { "a" => [3, 4_000_000], "l" => [3, 4_000_000] })
    maker.site([maker.mark(2)], { "a" => [1, 64] })
  end

  def test_a_recording
    one = parse(shop(lost: 7))
    assert_equal ["shop", 42, 524_288, 7, 5, 0], [one.name, one.pid, one.sample_bytes, one.lost, one.epoch, one.generation]
    assert_in_delta 30.5, one.taken_at - one.started_at, 1e-6
    assert_equal [50_000_000, 60_000_000], [one.rss_bytes, one.peak_rss_bytes]
    assert_equal 4, one.sites.size
  end

  def test_whose_code_a_frame_is
    kind = ->(method, file: nil, gem: nil, library: nil, remark: nil) { Culet::Profile::Frame.new(file, 1, method, gem, library, remark).kind }
    assert_equal :application, kind["Order#items", file: APP]
    assert_equal :gem, kind["Rack::Handler#call", file: GEM, gem: "rack 3.0.8"]
    assert_equal [:ruby] * 2, [kind["Set#add", file: "/usr/lib/ruby/3.3.0/set.rb", gem: "Ruby's own library"], kind["Array#map"]]
    assert_equal [:ruby] * 3, %w[libruby-3.3.so.3.3 librubygc.default.so ruby3.1].map { |name| kind["rb_str_new", library: name] }
    assert_equal [:library] * 2, %w[libz.so ruby_prof.so].map { |name| kind["deflate", library: name] }
    assert_equal [:unknown] * 2, [kind["(more frames)", remark: true], kind["??"]]
  end

  def test_sites_are_sorted_and_have_frames
    sites = data(shop).sites(:live)
    assert_equal 3, sites.size
    assert_equal sites.map(&:bytes).sort.reverse, sites.map(&:bytes)
    site = sites.first
    assert_equal ["[libz.so]", "Order#items", "Rack::Handler#call"], site.frames.map(&:method)
    assert_equal [nil, APP, GEM], site.frames.map(&:file)
    assert_equal [nil, 12, 30], site.frames.map(&:line)
    assert_equal [nil, nil, "rack 3.0.8"], site.frames.map(&:gem)
    assert_equal({ "endpoint" => "orders#show" }, site.labels)
    # 40 samples of 400 bytes stand for 40 times the mean distance.
    assert_in_delta 40 * 524_288, site.bytes, 40 * 400
    assert_in_delta site.bytes / 400, site.blocks, 1
    assert_equal "String", sites.last.class_name
  end

  def test_rows
    all = data(shop)
    total = all.total(:live).bytes
    by = ->(kind) { all.by(:live, kind).to_h { |row| [row.name, row.bytes / total] } }
    assert_equal ["#{APP}:12", "#{GEM}:30"], by.call(:line).keys
    assert_equal ["application", "rack 3.0.8"], by.call(:gem).keys
    assert_equal ["(malloc)", "String"], by.call(:class).keys
    assert_equal %w[Order#items Rack::Handler#call], by.call(:method).keys
    assert_equal ["endpoint=orders#show", "(no label)"], by.call(:label).keys.sort_by { |name| name.start_with?("(") ? 1 : 0 }
    Culet::Profile::KINDS.each { |kind| assert_in_delta 1, by.call(kind).values.sum, 1e-9 }
  end

  def test_what_was_inherited_counts_once
    master = StreamMaker.new(pid: 1)
    master.site([master.ruby(APP, 1, "boot")], { "a" => [100, 400], "l" => [100, 400] })
    worker = StreamMaker.new(pid: 2, generation: 1)
    worker.site([worker.ruby(APP, 1, "boot")], { "a" => [10, 400], "l" => [105, 400], "i" => [95, 400] })
    other = StreamMaker.new(pid: 3, generation: 1)
    other.site([other.ruby(APP, 1, "boot")], { "a" => [2, 400], "l" => [98, 400], "i" => [96, 400] })
    # The master has freed those up to 4 since, a worker 5 others.
    master.shared(1, 5..104, 400)
    worker.shared(1, 10..104, 400, inherited: true)
    other.shared(1, 2..97, 400, inherited: true)
    assert_equal [105, 98, 100], [worker, other, master].map { |one| data(one).total(:live).samples }
    assert_equal 103 + 10 + 2, data(worker, other).total(:live).samples
    assert_equal 103 + 10 + 2, data(worker, other, master).total(:live).samples
    assert_equal 110, data(worker, master).total(:live).samples
    assert_equal [110, 112], [[worker, master], [other, worker, master]].map { |all| data(*all).total(:allocated).samples }
    shared = ->(*all) { Culet::Profile::Document.new(data(*all)).to_h.values_at("common_bytes", "inherited_bytes") }
    sizes = [shared.call(worker, other), shared.call(worker, other, master), shared.call(master)]
    one = data(master).total(:live).bytes / 100
    assert_equal [[88, 103], [100, 3], [0, 0]], sizes.map { |pair| pair.map { |bytes| (bytes / one).round } }
    assert_equal [nil, nil], Culet::Profile::Document.new(data(master), view: :allocated).to_h.values_at("common_bytes", "inherited_bytes")
    alone = data(master, worker).processes.map { |one| one.total(:live).samples }
    assert_equal [100, 10], alone
  end

  def test_the_table_says_what_was_inherited
    makers = Array.new(2) { |at| shop(pid: at + 1, generation: 1) }
    makers.each { |maker| maker.shared(1, 1..30, 400, inherited: true) }
    both = table(data(*makers)).tr("\n", " ")
    assert_match(/note: 15\.7 MB was allocated before a fork, and several of these processes have it: it counts once\./, both)
    assert_match(/note: 15\.7 MB was inherited by a fork from a process that is not named here; it counts in full/, both)
    assert_match(/inherited by a fork/, table(data(makers.first)))
    refute_match(/counts once|inherited/, table(data(shop)))
  end

  def test_the_table_says_what_is_not_resident
    text = shop.to_s
    lines = text.lines[0..-2] << "U 50000000 20000000\n"
    found = Culet::Profile::Data.new([Culet::Profile::Recording.new("#{lines.join}E #{lines.size}\n", name: "process 1")])
    assert_match(/note: 30\.0 MB of blocks of 131 kB and more was never written, or is not resident/, table(found).tr("\n", " "))
    refute_match(/never written/, table(data(shop)))
  end

  # Compiled code has no library, and its Ruby frame follows.
  def test_compiled_code_hides_no_methods
    maker = StreamMaker.new.mapping(0x7100_0000, 0x7100_8000, "/opt/none/libz.so")
    path = ["Array#initialize", "Class#new"].map { |name| maker.ruby("<cfunc>", 0, name) }
    work = (1..8).map { |line| maker.ruby(APP, line, "m#{line}") }
    maker.site([0x7100_0123, *Array.new(7) { |at| 0x9999_0000 + at }, *path, *work], { "l" => [10, 400] })
    maker.site([0x9999_0000, 0x7100_0123], { "l" => [1, 400] })
    assert_equal ["[libz.so]", "Array#initialize", "Class#new", "m1"], data(maker).sites(:live).first.frames.first(4).map(&:method)
    assert_equal ["??", "[libz.so]"], data(maker).sites(:live).last.frames.map(&:method)
    assert_match(/blocks\n   Array#initialize\n   Class#new\n/, table(data(maker)))
  end

  # Ruby's functions that allocate for others, in a library that has symbols.
  def test_the_caller_of_a_wrapper_is_named
    folder = new_folder
    source = %w[rb_gc_impl_malloc objspace_xmalloc0 ruby_xmalloc rb_ary_new_capa].map { |name| "int #{name}(int a) { return a + 1; }" }.join("\n")
    library = compile_c(File.join(folder, "libruby-test.so"), source, "-shared", "-fPIC", "-O0")
    address = ->(name) { 0x7000_0001 + Culet::Elf.new(library).symbol(name).value }
    maker = StreamMaker.new.mapping(0x7000_0000, 0x7010_0000, library)
    maker.site([*%w[rb_gc_impl_malloc objspace_xmalloc0 ruby_xmalloc rb_ary_new_capa].map(&address), maker.ruby(APP, 1, "a")], { "l" => [3, 400] })
    maker.site([address.call("ruby_xmalloc")], { "l" => [1, 400] })
    assert_equal [%w[rb_ary_new_capa a], ["ruby_xmalloc"]], data(maker).sites(:live).map { |site| site.frames.map(&:method) }
  end

  def test_what_culet_holds_is_apart
    maker = StreamMaker.new.mapping(0x7000_0000, 0x7000_8000, "/opt/none/culet/culet.so").mapping(0x7100_0000, 0x7100_8000, "/opt/none/libruby.so")
    maker.mapping(0x7200_0000, 0x7200_8000, "/opt/none/libz.so")
    app = maker.ruby(APP, 1, "call")
    own = [[0x7100_0123, maker.ruby("<cfunc>", 0, "ObjectSpace::WeakMap#[]="), 0x7000_0123, app], [0x7000_0123, app],
           [maker.ruby("/opt/none/culet/runtime/profile/rack.rb", 9, "name"), app]]
    own.each { |words| maker.site(words, { "l" => [9, 400], "g" => [9, 400] }, labels: { "endpoint" => "a#b" }) }
    others = [[0x7100_0123, 0x7000_0123, maker.ruby("<cfunc>", 0, "Kernel#require"), app], [0x7200_0123, 0x7000_0123, app],
              [maker.ruby("/opt/none/culet/tools/report.rb", 9, "read"), app], [maker.ruby(APP, 2, "inner"), 0x7000_0123, app]]
    others.each { |words| maker.site(words, { "l" => [1, 400] }) }
    found = data(maker)
    assert_equal [*[true] * 3, *[false] * 4], found.sites(:live).map(&:own?)
    assert_equal [{}], found.sites(:live).map(&:labels).uniq
    Culet::Profile::KINDS.each { |kind| assert_equal "culet itself", found.by(:live, kind).last.name, kind }
    assert_equal ["culet itself"], found.by(:growth, :line).map(&:name)
    assert_match(/^culet itself: 14\.2 MB \(87\.1 %\)$/, table(found))
    refute_match(/a#b|WeakMap/, table(found))
    assert_match(/^culet itself: 14\.2 MB \(87\.1 %\)$/, table(found, by: :line))
  end

  def test_a_difference
    later = StreamMaker.new
    later.site([later.ruby(APP, 1, "grows")], { "l" => [50, 400] })
    later.site([later.ruby(APP, 9, "new")], { "l" => [5, 400] })
    before = StreamMaker.new
    before.site([before.ruby(APP, 1, "grows")], { "l" => [20, 400] })
    before.site([before.ruby(APP, 5, "gone")], { "l" => [9, 400] })
    change = Culet::Profile::Difference.new(data(later), data(before))
    rows = change.by(:live, :method).to_h { |row| [row.name, (row.bytes / 524_288).round] }
    assert_equal({ "grows" => 30, "gone" => -9, "new" => 5 }, rows)
    assert_equal(%w[grows gone new], change.sites(:live).map { |site| site.frames.first.method })
    assert_in_delta 26, change.total(:live).bytes / 524_288, 0.1
    assert_operator change.total(:live).low_bytes, :<, change.total(:live).bytes
  end

  # Garwood's limits, from tables.
  def test_limits_of_few_samples
    { 1 => [0.0253, 5.572], 2 => [0.2422, 7.225], 5 => [1.623, 11.668], 10 => [4.795, 18.39], 30 => [20.24, 42.83] }.each do |count, (low, high)|
      found = Culet::Profile::Estimate.poisson(count)
      assert_in_delta low, found.first, 0.05
      assert_in_delta high, found.last, 0.06
    end
  end

  # The interval has the truth in some 95 of 100 cases.
  def test_intervals_hold_the_truth
    random = Random.new(1)
    [[40, 2_000_000], [400, 300_000], [100_000, 1_000], [3_000_000, 20]].each do |size, blocks|
      probability = 1 - Math.exp(-size / 524_288.0)
      weight = 1 / probability
      inside = Array.new(400) do
        samples = poisson(random, blocks * probability)
        estimate = Culet::Profile::Estimate.new(samples, samples * weight, samples * weight * size, samples * weight * (weight - 1) * size * size)
        samples.zero? || (size * blocks).between?(estimate.low_bytes.floor, estimate.high_bytes.ceil)
      end.count(true)
      # Blocks above the distance are sampled almost surely: then binomial, which the test draws as Poisson.
      assert_operator inside, :>=, size > 1_000_000 ? 0 : 365, "#{size} bytes"
    end
  end

  def poisson(random, mean)
    count = 0
    left = mean
    count += 1 while (left += Math.log(1 - random.rand)).positive?
    count
  end

  # Of 24 samples a leak has two in each period; the boot is larger, and of the first one.
  def growing(maker = StreamMaker.new, base: 1_000_000, taken: 9_000_000, span: 60_000_000_000)
    leak, boot = [[APP, 7, "leak"], ["/srv/shop/config/boot.rb", 1, "boot"]].map { |frame| maker.ruby(*frame) }
    library = maker.ruby(GEM, 30, "Rack::Handler#call")
    maker.growth(base: base, taken: taken, span: span)
    maker.site([boot], { "l" => [500, 400], "g" => [500, 400] }).births(1, { 0 => 500 }, 400)
    maker.site([library, leak], { "l" => [24, 400], "g" => [24, 400] }).births(2, (0..11).to_h { |at| [at, 2] }, 400, dropped: 2)
  end

  def test_a_leak_comes_before_a_larger_boot
    found = data(growing)
    assert_equal %w[leak boot], found.sites(:growth).map { |site| site.frames.last.method }
    assert_equal [[0, true], [2, false]], found.by(:growth, :place).map { |row| [row.rank, row.grows?] }
    assert_equal ["#{GEM}:30", "/srv/shop/config/boot.rb:1"], found.by(:growth, :line).map(&:name)
    assert_equal %w[boot leak], found.sites(:live).map { |site| site.frames.last.method }
  end

  def test_the_verdict_in_json_and_words
    document = Culet::Profile::Document.new(data(growing), view: :growth).to_h
    assert_equal ["growth", nil, 8_000_000, (522 * 524_488).round(-6)],
                 document["growth"].values_at("verdict", "reason", "rss_growth_bytes", "explained_bytes").then { |list| list.first(3) + [list[3].round(-6)] }
    assert_equal [true, false], document["sites"].map { |site| site["grows"] }
    assert_equal ["#{APP}:7", "/srv/shop/config/boot.rb:1"], document["sites"].map { |site| site["application"] }
    refute Culet::Profile::Document.new(data(growing)).to_h.key?("growth")
    text = table(data(growing), view: :growth).tr("\n", " ")
    assert_match(/1 line of the program grows all the time: its survivors were allocated in all parts of 60 s\./, text)
    assert_match(/1\. grows: 12\.6 MB .*2\. 262 MB/, text)
    refute_match(/cannot be told apart/, text)
    assert_match(/Resident memory since then: \+8\.00 MB.*by these sites +\+274 MB +everything else/, text)
  end

  def test_no_growth_and_reasons_to_be_unsure
    boot = StreamMaker.new.growth(base: 1_000_000, taken: 2_000_000, span: 60_000_000_000)
    boot.site([boot.ruby(APP, 1, "boot")], { "g" => [500, 400] }).births(1, { 0 => 500 }, 400)
    none = data(boot)
    assert_equal :none, Culet::Profile::Growth.new(none).verdict
    assert_match(/No growth shown: no line of the program has survivors from all parts of 60 s\. A leak of 10\.5 MB or more/,
                 table(none, view: :growth).tr("\n", " "))
    levels = Culet::Levels::TITLES.keys.to_h { |name| [name, 0] }.merge("stacks" => 30_000_000, "malloc_free" => 5_000_000)
    unsampled = Culet::Profile::Growth.new(none, levels: levels)
    assert_equal [:unknown, :unsampled, 35_000_000, { "stacks" => 30_000_000, "malloc_free" => 5_000_000 }],
                 [unsampled.verdict, unsampled.reason, unsampled.rss_growth_bytes, unsampled.other_levels]
    young = StreamMaker.new.growth(base: 1, taken: 2, span: 0)
    young.site([young.ruby(APP, 1, "boot")], { "l" => [500, 400] })
    # 30 lines, each with one survivor of a period of its own
    spread = StreamMaker.new.growth(base: 1, taken: 2, span: 60_000_000_000)
    30.times { |at| spread.site([spread.ruby(APP, at + 1, "m")], { "g" => [1, 400] }).births(at + 1, { at % 12 => 1 }, 400) }
    pairs = { young => :young, spread => :spread }.map { |maker, reason| [reason, Culet::Profile::Growth.new(data(maker))] }
    pairs.each { |reason, growth| assert_equal [:unknown, reason], [growth.verdict, growth.reason] }
    change = Culet::Profile::Growth.new(Culet::Profile::Difference.new(data(growing), data(growing)))
    assert_equal [:unknown, :difference, nil, nil], [change.verdict, change.reason, change.rss_growth_bytes, change.explained_bytes]
    assert_match(/fewer than three major collections/, table(data(young), view: :growth).tr("\n", " "))
  end

  # The collector allocates where objects do, and what deferred work copies counts with its objects.
  def test_the_collectors_growth_is_no_line_of_the_program
    maker = StreamMaker.new.growth(base: 1, taken: 2, span: 60_000_000_000)
    all = (0..11).to_h { |at| [at, 9] }
    maker.site([maker.mark(2)], { "g" => [108, 400] }).births(1, all, 400)
    maker.site([maker.mark(7)], { "g" => [108, 400] }).births(2, all, 400)
    found = data(maker)
    assert_equal [[], [[2, false]] * 2], [found.growing, found.by(:growth, :line).map { |row| [row.rank, row.grows?] }]
    lines = maker.to_s.lines
    copied = Culet::Profile::Recording.new([*lines[0..-2], "O 100 100 1\n", "E #{lines.size}\n"].join, name: "shop")
    assert_equal ["(in garbage collection)"], Culet::Profile::Data.new([copied]).by(:growth, :line).map(&:name)
  end

  def test_the_line_of_the_program_comes_before_that_of_a_library
    maker = StreamMaker.new
    erb = maker.ruby("/usr/lib/ruby/3.1.0/erb.rb", 905, "ERB#result")
    maker.site([erb, maker.ruby(APP, 20, "Order#page")], { "l" => [60, 400] })
    maker.site([erb, maker.ruby(APP, 21, "Order#mail")], { "l" => [50, 400] })
    maker.site([maker.ruby(APP, 20, "Order#page")], { "l" => [5, 400] })
    found = data(maker)
    assert_equal({ "#{APP}:20" => 65, "#{APP}:21" => 50 }, found.by(:live, :place).to_h { |row| [row.name, row.samples] })
    rows = Culet::Profile::Document.new(found, by: :line).to_h["rows"]
    assert_equal [["/usr/lib/ruby/3.1.0/erb.rb:905", "#{APP}:20"], ["#{APP}:20", "#{APP}:20"]], rows.map { |row| row.values_at("name", "application") }
    assert_match(%r{order.rb:20 .* /usr/lib/ruby/3.1.0/erb.rb:905$}, table(found, by: :line))
    refute Culet::Profile::Document.new(found, by: :gem).to_h["rows"].first.key?("application")
  end

  def test_growth_that_is_damaged
    lines = growing.to_s.lines
    { "W 9 0 1 1.000e0 1.000e0 1.000e0" => "growth without a site", "W 1 12 1 1.000e0 1.000e0 1.000e0" => "period beyond",
      "W 1 0 1 1.000e0" => "incomplete growth", "D 1 * 1 1.000e0 1.000e0 1.000e0" => "change without a sign",
      "G 1 2" => "incomplete line G" }.each do |line, sentence|
      error = assert_raises(Culet::Error) { Culet::Profile::Recording.new([*lines[0..-2], "#{line}\n", "E #{lines.size}\n"].join, name: "shop") }
      assert_match(/\Ashop has .*#{sentence}/, error.message)
    end
  end

  def test_bytes_that_are_not_utf8_and_escapes
    maker = StreamMaker.new
    maker.site([maker.ruby("/tmp/a\\x0ab\\x5c.rb", 1, "caf\\xc3\\xa9 \\xff")], { "l" => [1, 40] })
    frame = data(maker).sites(:live).first.frames.first
    assert_equal ["/tmp/a\nb\\.rb", "café ?"], [frame.file, frame.method]
  end

  def test_damaged_streams
    good = shop.to_s
    { good.sub("profile 1", "profile 2") => "is not a profile of culet, or of another version",
      "" => "is not a profile of culet, or of another version",
      good.lines[0..-2].join => "ends too early",
      good.sub(/^E \d+/, "E 3") => "has #{good.lines.size - 1} lines where its end names another number",
      good.sub(/^P .*\n/, "").sub(/^E \d+/, "E #{good.lines.size - 2}") => "does not say which process it is of",
      good.sub(/^K 2 1/, "K 2 99") => "has a stack without its caller",
      good.sub(/^K 2 1/, "K 1 0") => "has a stack twice",
      good.sub(/^S m \d+/, "S m 999999") => "has a site without a stack",
      good.sub(/^S m/, "S x") => "has a site of an unknown kind",
      good.sub(" a 90", " z 90") => "has an unknown view",
      good.sub(" a 90", " a -90") => "has a number that is none",
      good.sub(/ a 90 \S+/, " a 90 NaN") => "has a sum that is none",
      good.sub(/ a 90 \S+/, " a 90 1e99") => "has a sum that is too large",
      good.sub(/ a 90 \S+/, " a 90") => "has an incomplete site",
      good.sub(/^P 42 524288/, "P 42 0") => "has a sample distance of 0",
      good.sub(/^P 42/, "P 99999999999999999999999") => "has a number that is none",
      good.sub(/^R 50000000 /, "R ") => "has an incomplete line R",
      good.sub(/^F 1 1 /, "F 1 1 #{"x" * 70_000}") => "has a line of 70" }.each do |text, sentence|
      error = assert_raises(Culet::Error, sentence) { Culet::Profile::Recording.new(text, name: "some.profile") }
      assert_operator error.message, :start_with?, "some.profile #{sentence}"
    end
  end

  def test_mutated_streams_end_in_a_sentence_or_a_profile
    random = Random.new(7)
    good = shop.to_s
    2000.times do
      text = good.dup.b
      random.rand(1..6).times { text.setbyte(random.rand(text.bytesize), random.rand(256)) }
      begin
        data = Culet::Profile::Data.new([Culet::Profile::Recording.new(text, name: "x")])
        Culet::Profile::VIEWS.each { |view| data.sites(view) && Culet::Profile::Table.new(data, view: view).to_s.encode("UTF-8") }
      rescue Culet::Error => e
        assert_match(/\Ax \w/, e.message)
      end
    end
  end

  def test_files_that_cannot_be_read
    folder = new_folder
    error = assert_raises(Culet::Error) { Culet::Profile::Stream.load("#{folder}/none").recording }
    assert_match(%r{\Athere is no file #{folder}/none; give a file}, error.message)
    error = assert_raises(Culet::Error) { Culet::Profile::Stream.load(folder).recording }
    assert_match(/\A#{folder} is a directory; give a file/, error.message)
  end

  # Names of native functions: of a library that is there, and whose build id agrees.
  def test_symbols
    maps = File.readlines("/proc/self/maps").map(&:split)
    line = maps.find { |fields| fields[1].include?("x") && fields[5].to_s.match?(%r{/libc[.-]}) }
    start, finish = line[0].split("-").map(&:hex)
    malloc = Culet::Elf.new(line[5]).symbol("malloc")
    address = start - line[2].hex + malloc.value
    mapping = Culet::Profile::Recording::Mapping.new(start, finish, line[2].hex, nil, line[5])
    assert_equal ["malloc", File.basename(line[5])], Culet::Profile::Symbols.new([mapping]).name(address + 1).then { |name, file| [name[/malloc/], file] }
    mapping.build_id = "00ff"
    assert_equal ["[#{File.basename(line[5])}]", File.basename(line[5])], Culet::Profile::Symbols.new([mapping]).name(address + 1)
    assert_equal ["??", nil], Culet::Profile::Symbols.new([mapping]).name(16)
    mapping.path = "/etc/passwd"
    assert_equal ["[passwd]", "passwd"], Culet::Profile::Symbols.new([mapping]).name(address + 1)
  end

  def table(data, **options) = Culet::Profile::Table.new(data, view: :live, **options).to_s

  # Many samples, and few.
  def sure_and_unsure
    maker = StreamMaker.new
    { "big" => 4000, "one" => 400, "two" => 390, "three" => 20, "four" => 3 }.each { |name, samples| maker.site([maker.ruby(APP, 1, name)], { "l" => [samples, 400] }) }
    data(maker)
  end

  def test_the_table_names_what_cannot_be_told_apart
    [[table(sure_and_unsure), "Sites"], [table(sure_and_unsure, by: :method), "Rows"]].each do |text, what|
      assert_match(/^note: #{what} 2 to 3 cannot be told apart/, text)
    end
    refute_match(/told apart/, table(sure_and_unsure, top: 2))
    assert_match(/^3 more sites: 21\d MB \(8\.\d %\)$/, table(sure_and_unsure, top: 2))
    assert_match(/^1 more row: 1\.57 MB \(0\.1 %\)$/, table(sure_and_unsure, by: :method, top: 4))
  end

  def test_the_table_shows_sites_that_look_the_same_once
    maker = StreamMaker.new
    path = (1..9).map { |line| maker.ruby("#{APP}#{line}", line, "m#{line}") }
    maker.site([*path, maker.ruby("/a.rb", 1, "a"), path.last], { "l" => [10, 400] }).site([*path, maker.ruby("/b.rb", 1, "b"), path.last], { "l" => [30, 400] })
    text = table(data(maker))
    assert_match(/^1\. 21\.0 MB \(100\.0 %/, text)
    refute_match(/^2\./, text)
    assert_equal 2, data(maker).sites(:live).size
  end

  def test_the_table_of_a_difference
    before, after = [{ "more" => 100, "less" => 200, "same" => 10 }, { "more" => 300, "less" => 50, "same" => 12 }].map do |samples|
      maker = StreamMaker.new
      data(samples.each_with_object(maker) { |(name, count), one| one.site([one.ruby(APP, 1, name)], { "l" => [count, 400] }) })
    end
    text = table(Culet::Profile::Difference.new(after, before))
    assert_match(/\Aprocess 0: memory in use: changed by \+27\.3 MB\n/, text)
    assert_match(/^1\. \+105 MB \(\+[\d.]+ MB to \+[\d.]+ MB\), \+262,\d{3} blocks\n   more/, text)
    assert_match(/^2\. -78\.7 MB \(-[\d.]+ MB to -[\d.]+ MB\), -196,\d{3} blocks\n   less/, text)
    assert_match(/^note: 1 of these 3 changes may be chance/, text)
    refute_match(/share/, table(Culet::Profile::Difference.new(after, before), by: :method))
    refute_match(/source file/, text)
  end

  def test_the_table_of_a_difference_of_two_programs
    other = StreamMaker.new
    other.site([other.ruby("/srv/blog/app.rb", 1, "x"), other.ruby(GEM, 1, "y")], { "l" => [9, 400] })
    assert_match(/^note: The two profiles have no source file of an application in common/, table(Culet::Profile::Difference.new(data(shop), data(other))))
  end

  # The second profile of a process begins when the first has ended, or goes on from there.
  def test_the_table_of_a_difference_of_two_starts
    before = shop.to_s
    later = ->(started, taken) { before.sub("1790000000000000000 1790000030500000000", "#{started} #{taken}") }
    texts = [later.call(1_790_000_040 * (10**9), 1_790_000_070 * (10**9)), later.call(1_790_000_000 * (10**9), 1_790_000_070 * (10**9))].map do |text|
      change = Culet::Profile::Difference.new(*[text, before].map { |one| Culet::Profile::Data.new([Culet::Profile::Recording.new(one, name: "x")]) })
      table(change)
    end
    assert_match(/^note: The profile was started again between the two/, texts[0])
    refute_match(/started again/, texts[1])
  end

  def test_the_table_without_samples
    assert_match(/: 0 bytes\n0 samples, one per 524 kB on average\n\nNothing of this kind/, table(data(StreamMaker.new)))
    assert_match(/there were none since the start/, Culet::Profile::Table.new(data(StreamMaker.new(epoch: 0)), view: :growth).to_s.tr("\n", " "))
  end

  def test_the_table_names_many_processes
    text = table(data(*Array.new(3) { |at| shop(pid: at + 1) }))
    assert_match(/\Aprocesses 0, 1 and 2: memory in use/, text)
    assert_match(/\Aprocess 0 and 5 other processes: memory in use/, table(data(*Array.new(6) { shop })))
  end

  # What Ruby calls a library's initialization, and what the extension adds to a stack.
  def test_frames_without_lines_and_those_of_the_sampler
    maker = StreamMaker.new.mapping(0x7000_0000, 0x7000_8000, "/opt/none/culet.so").mapping(0x7100_0000, 0x7100_8000, "/opt/none/libz.so")
    init = maker.ruby("/opt/openssl.so", 0, "/opt/openssl.so", first: 0)
    maker.site([0x7000_0123, 0x7100_0123, init], { "l" => [10, 400] }, kind: "o")
    site = data(maker).sites(:live).first
    assert_equal ["[libz.so]", "/opt/openssl.so"], site.frames.map(&:to_s)
    assert_equal ["/opt/openssl.so"], site.names(:line)
  end

  # Ruby calls a file of RubyGems internal, with its path.
  def test_a_file_within_an_internal_gem
    maker = StreamMaker.new
    maker.site([maker.ruby("<internal:/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_require.rb>", 85, "Kernel#require")], { "l" => [10, 400] })
    text = Culet::Profile::Table.new(data(maker), view: :live).to_s
    assert_includes text, "   Kernel#require (rubygems: core_ext/kernel_require.rb:85)\n"
  end

  def test_the_table
    text = Culet::Profile::Table.new(data(shop(lost: 3)), view: :live).to_s
    assert_match(/\Aprocess 0: memory in use: 3\d\.\d MB\n/, text)
    assert_match(/^1\. 21\.0 MB \(5\d\.\d %; \d+\.\d MB to \d+\.\d MB\), 52,\d{3} blocks, endpoint=orders#show$/, text)
    assert_includes text, "   Order#items (#{APP}:12)\n   Rack::Handler#call (rack 3.0.8: lib/rack/handler.rb:30)"
    assert_match(/String objects/, text)
    assert_match(/3 samples found no room/, text)
    by = Culet::Profile::Table.new(data(shop), view: :live, by: :gem).to_s
    assert_match(/^ *rack 3\.0\.8 +12\.\d MB/, by)
    assert_match(/have survived|has survived three major collections; there were 5/, Culet::Profile::Table.new(data(StreamMaker.new), view: :growth).to_s.tr("\n", " "))
  end

  def test_the_document
    document = Culet::Profile::Document.new(data(shop), view: :live).to_h
    assert_equal ["live", 524_288], document.values_at("view", "sample_bytes")
    site = document["sites"].first
    assert_equal [APP, 12, "Order#items", nil, nil], site["frames"][1].values_at("file", "line", "method", "gem", "library")
    assert_operator site["low_bytes"], :<, site["bytes"]
    assert_operator site["bytes"], :<, site["high_bytes"]
    assert_nil site["class"]
    rows = Culet::Profile::Document.new(data(shop), view: :live, by: :line, top: 1).to_h["rows"]
    assert_equal(["#{APP}:12"], rows.map { |row| row["name"] })
    JSON.generate(document)
    # Before the first sample the profile knows no size.
    resident = ["R 0 0", "R 50000000 60000000"].map do |line|
      one = parse(shop.to_s.sub(/^R .*/, line))
      Culet::Profile::Document.new(Culet::Profile::Data.new([one])).to_h["processes"].first.values_at("rss_bytes", "peak_rss_bytes")
    end
    assert_equal [[nil, nil], [50_000_000, 60_000_000]], resident
  end
end
