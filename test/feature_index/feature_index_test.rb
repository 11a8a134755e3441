# frozen_string_literal: true

require_relative "require_helper"
require "culet/feature_index"
require "objspace"

# The index as a library.
class FeatureIndexTest < Minitest::Test
  Index = Culet::FeatureIndex

  def setup = @directory = new_folder

  def test_each_name_that_a_require_may_give
    index = Index.new
    index.add("/x/lib/b/c.rb", below: "/x/lib").add("/x/lib/b/n.so", below: "/x/lib").add("/x/lib/b/n.rb", below: "/x/lib")
    index.add("/y/lib/b/c.rb", below: "/y/lib").add("/y/lib/d.so", below: "/y/lib")
    { "b/c" => "/x/lib/b/c.rb", "b/c.rb" => "/x/lib/b/c.rb", "b/c.so" => nil, "b/n" => "/x/lib/b/n.rb", "b/n.so" => "/x/lib/b/n.so",
      "d" => "/y/lib/d.so", "d.rb" => nil, "c" => nil, "lib/d" => nil, "" => nil, "/x/lib/b/c" => nil, "b/c.txt" => nil, "B/C" => nil }.each do |feature, path|
      path.nil? ? assert_nil(index.find(feature), feature) : assert_equal(path, index.find(feature))
    end
    assert_equal "/y/lib/b/c.rb", index.find("b/c", ["/y/lib", "/x/lib"])
    assert_nil index.find("b/c", ["/z/lib"])
    assert_equal [%w[/x/lib/b/c.rb /x/lib/b/n.so /x/lib/b/n.rb /y/lib/b/c.rb /y/lib/d.so], %w[/x/lib /y/lib]], [index.files, index.folders]
    assert_empty index.changed, "what was not read cannot have changed"
  end

  def test_what_it_cannot_have
    index = Index.new
    [["/x/a.rb", "/y"], ["x/a.rb", "x"], ["/x/a.txt", "/x"], ["/x", "/x"], ["/x/a.rb", "/x/a"], ["/x/.rb", "/x/"],
     ["/#{"x" * 70_000}/a.rb", "/x"]].each do |path, below|
      assert_raises(ArgumentError, path[0, 20]) { index.add(path, below: below) }
    end
    assert_raises(ArgumentError) { index.add("/x/a\0.rb", below: "/x") }
    assert_raises(TypeError) { index.add(:x, below: "/x") }
    index.add("/x/a.rb", below: "/x").add("/y/a.rb", below: "/y")
    assert_match(/consecutively/, assert_raises(Culet::Error) { index.add("/x/b.rb", below: "/x") }.message)
    assert_match(/read from a file/, assert_raises(Culet::Error) { Index.open(index.write("#{@directory}/i")).add("/x/b.rb", below: "/x") }.message)
    assert_raises(FrozenError) { Index.new.freeze.add("/x/a.rb", below: "/x") }
    assert_equal "/x/a.rb", index.find("a")
  end

  def test_errors_after_a_compaction
    file = Index.new.add("/x/a.rb", below: "/x").write("#{@directory}/i")
    out, err, = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rculet/feature_index", "-e", <<~RUBY, file)
      index = Culet::FeatureIndex.open(ARGV.first)
      GC.verify_compaction_references(toward: :empty, double_heap: true) if GC.respond_to?(:compact)
      index.add("/x/b.rb", below: "/x") rescue p $!.class
    RUBY
    assert_equal "Culet::Error\n", out, err
  end

  # Not one for each folder on the way.
  def test_at_most_two_allocations_for_a_path_however_deep
    counts = [1, 5, 25, 125].to_h do |depth|
      paths = Array.new(4_000) { |number| "/lib/#{"d/" * depth}file#{number}.rb".freeze }
      index = Index.new
      below = "/lib"
      index.add("/lib/first.rb", below: below)
      objects = GC.stat(:total_allocated_objects)
      allocations = index.allocations
      paths.each { |path| index.add(path, below: below) }
      objects = GC.stat(:total_allocated_objects) - objects
      allocations = index.allocations - allocations
      assert_operator objects + allocations, :<=, 2 * paths.size
      assert_operator objects, :<, 50, "no path is an object"
      assert_equal paths.last, index.find("#{"d/" * depth}file3999")
      [depth, allocations]
    end
    # What grows is one table of text, by doubling: 125 folders are 32 times the text of 4.
    assert_operator counts[125] - counts[1], :<=, 8
  end

  def test_a_path_is_stored_once
    depth = "/folder" * 60
    once = Index.new.add("/x#{depth}/a.rb", below: "/x")
    many = Index.new
    ["/x", *(1..40).map { |count| "/x#{"/folder" * count}" }].each { |below| many.add("/x#{depth}/a.rb", below: below) }
    assert_equal "/x#{depth}/a.rb", many.find("#{"folder/" * 20}a")
    own = "/x#{depth}/a.rb".bytesize
    assert_operator many.bytes - once.bytes, :<, 40 * own, "41 load paths that lead to one file share its text"
  end

  def test_what_it_holds_is_told_to_ruby
    index = Index.new
    small = ObjectSpace.memsize_of(index)
    10_000.times { |number| index.add("/lib/some/where/file#{number}.rb", below: "/lib") }
    assert_operator ObjectSpace.memsize_of(index), :>, small + 400_000
    assert_operator ObjectSpace.memsize_of(Index.open(index.write("#{@directory}/i"))), :>, File.size("#{@directory}/i")
  end

  def test_scan
    FileUtils.mkdir_p(["#{@directory}/lib/a/b", "#{@directory}/lib/.git"])
    %w[a.rb a/b.rb a/b/c.so a/b/c.txt .git/d.rb .e.rb].each { |path| FileUtils.touch("#{@directory}/lib/#{path}") }
    index = nil
    assert_settles("it is scanned while it is young") { FileUtils.touch("#{@directory}/lib") && (index = Index.new).scan("#{@directory}/lib") == :young }
    assert_equal %i[gone gone], [index.scan("#{@directory}/none"), index.scan("#{@directory}/lib/a.rb")]
    assert_empty index.files
    sleep 3.2
    File.symlink("#{@directory}/lib", "#{@directory}/link")
    assert_equal %i[read read], [index.scan("#{@directory}/link"), index.scan("#{@directory}/lib")]
    assert_equal %w[a.rb a/b.rb a/b/c.so].map { |path| "#{@directory}/lib/#{path}" }, index.files.sort
    assert_equal "#{@directory}/lib/a/b/c.so", index.find("a/b/c")
    assert_empty index.changed
    FileUtils.touch("#{@directory}/lib/a/b/new.rb")
    assert_equal ["#{@directory}/lib/a/b"], index.changed
  end

  def test_a_scan_that_cannot_be_kept_up_with
    FileUtils.mkdir("#{@directory}/lib")
    File.mkfifo("#{@directory}/lib/pipe.rb")
    sleep 3.2
    index = Index.new
    assert_equal :unreadable, index.scan("#{@directory}/lib")
    assert_equal [["#{@directory}/lib"], []], [index.folders, index.files]
  end

  def test_kept_in_a_file
    index = example
    file = index.write("#{@directory}/index")
    assert_equal 0o400, File.stat(file).mode & 0o777
    other = Index.open(file)
    assert_equal [index.files, index.folders, index.bytes, 0], [other.files, other.folders, other.bytes, other.allocations]
    assert_equal index.find("d3/f3"), other.find("d3/f3")
    index.add("/lib/later.rb", below: "/lib").write(file)
    assert_nil other.find("later"), "what was read stays"
    assert_equal "/lib/later.rb", Index.open(file).find("later")
    assert_equal ["index"], Dir.children(@directory)
    assert_match(/cannot write .*No such file/, assert_raises(Culet::Error) { index.write("#{@directory}/none/index") }.message)
  end

  def test_a_file_that_is_not_fit_is_refused
    file = example.write("#{@directory}/index")
    bytes = File.binread(file)
    { "" => "size", "x" * 500 => "not an index", bytes[0..-2] => "truncated", "#{bytes}\0" => "truncated", bytes.sub("lib/d3", "lib/e3") => "damaged",
      bytes.dup.tap { |text| text.setbyte(8, 99) } => "another version" }.each { |text, reason| assert_refused(text, /#{reason}/) }
    File.write("#{@directory}/written", bytes)
    File.chmod(0o666, "#{@directory}/written")
    assert_match(/other users may write to it/, assert_raises(Culet::Error) { Index.open("#{@directory}/written") }.message)
    File.symlink(file, "#{@directory}/link")
    assert_raises(Culet::Error) { Index.open("#{@directory}/link") }
    [@directory, "/dev/null", "#{@directory}/none"].each { |path| assert_raises(Culet::Error) { Index.open(path) } }
    return unless Process.uid.zero?

    File.chmod(0o400, "#{@directory}/written")
    File.chown(65_534, 65_534, "#{@directory}/written")
    assert_match(/another user/, assert_raises(Culet::Error) { Index.open("#{@directory}/written") }.message)
  end

  # A sum that is right proves nothing: here it is, over bytes that are not. In a process of its own, as it must not crash.
  def test_bytes_that_lie_do_no_harm
    file = example.write("#{@directory}/index")
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", <<~RUBY, file, "#{@directory}/bad", env: NEUTRAL)
      require "culet/feature_index"
      MASK = 0xffff_ffff_ffff_ffff
      def sum(bytes)
        sum = 0
        bytes.unpack("Q*").each { |word| sum = ((sum ^ word) * 0x9E3779B97F4A7C15) & MASK; sum ^= sum >> 32 }
        sum
      end
      good = File.binread(ARGV[0])
      header = 72
      raise "the header has another size" unless good[24, 8].unpack1("Q") == sum(good[header..])
      random = Random.new(5)
      opened = 0
      3_000.times do |round|
        bad = good.dup
        (1 + round % 4).times do
          place = round.odd? ? random.rand(32...bad.bytesize) : random.rand(header...bad.bytesize)
          value = [0, 1, 0x7f, 0xff, random.rand(256)].sample(random: random)
          (round % 3 == 0 ? 4 : 1).times { |i| bad.setbyte(place + i, value) if place + i < bad.bytesize }
        end
        bad[24, 8] = [sum(bad[header..])].pack("Q")
        File.binwrite(ARGV[1], bad)
        begin
          index = Culet::FeatureIndex.open(ARGV[1])
        rescue Culet::Error
          next
        end
        opened += 1
        %w[f1 d3/f3 d3 d7/f7.rb nothing].each { |name| index.find(name); index.find(name, ["/lib", "/other"]) }
        index.files; index.folders; index.changed
        GC.start if round % 500 == 0
      end
      puts opened
    RUBY
    assert_predicate status, :success?, err
    assert_operator out.to_i, :>, 500, "most of the damage has to get past the sum"
  end

  def test_without_begin
    assert_match(/was created neither/, assert_raises(Culet::Error) { Index.allocate.find("x") }.message)
  end

  private

  def example
    Index.new.tap { |index| 100.times { |number| index.add("/lib/d#{number}/f#{number}.rb", below: "/lib") } }
  end

  def assert_refused(text, reason)
    path = "#{@directory}/bad"
    File.binwrite(path, text)
    error = assert_raises(Culet::Error) { Index.open(path) }
    assert_match reason, error.message
    assert_match(/write it again/, error.message)
  end
end
