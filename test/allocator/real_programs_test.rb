# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "digest"

# Ruby's own programs on the preloaded allocator: what they print and write must be what they print and write on
# glibc's. (python3, git, perl, sqlite3 and others: allocator/test/programs/real.sh.)
class RealProgramsTest < Minitest::Test
  RAKE_FILE = <<~RUBY
    require "rake/clean"
    SOURCES = (1..120).map { |i| "part\#{i}.txt" }
    SOURCES.each_with_index do |name, i|
      file(name) { |task| File.write(task.name, (0..i * 20).map { |n| "line \#{n} of \#{task.name}\\n" }.join) }
      file(name.sub(".txt", ".up") => name) { |task| File.write(task.name, File.read(task.source).upcase) }
    end
    multitask parts: SOURCES.map { |name| name.sub(".txt", ".up") }
    file "all.up" => :parts do |task|
      File.write(task.name, SOURCES.map { |name| File.read(name.sub(".txt", ".up")) }.join)
    end
    task(:shell => "all.up") { sh "wc -l all.up && sort -u all.up | cksum" }
    task default: :shell
  RUBY

  GEM_SPECIFICATION = <<~RUBY
    Gem::Specification.new do |s|
      s.name = "%<name>s"
      s.version = "1.2.3"
      s.summary = "A gem for a test"
      s.authors = ["culet"]
      s.files = ["lib/%<name>s.rb"]
      %<dependencies>s
    end
  RUBY

  # Objects of all sizes come and go in threads, while the heap is compacted.
  CHURN = <<~RUBY
    def churn(seed, rounds)
      random = Random.new(seed)
      kept = Array.new(500)
      sum = 0
      rounds.times do |i|
        n = random.rand(3000)
        kept[i % 500] = case i % 6
                        when 0 then "x" * n
                        when 1 then Array.new(n / 8, i)
                        when 2 then (0..n / 40).to_h { |k| ["key\#{k}", k.to_s * 9] }
                        when 3 then (3**(n / 3)).to_s
                        when 4 then ("ab" * n).gsub(/b/) { "c" }
                        else Struct.new(:a, :b).new(n, [n] * 30)
                        end
        old = kept[(i * 7) % 500]
        sum += old.respond_to?(:size) ? old.size : 1
      end
      sum
    end
    def compact = GC.respond_to?(:compact) ? GC.compact : GC.start
  RUBY

  def setup
    @library = Culet::Allocators.culet_library
  end

  def test_rake
    compare("rake", "-j", "4") { |folder| File.write("#{folder}/Rakefile", RAKE_FILE) }
  end

  def test_bundler
    skip_unless_all
    skip "bundler is not installed" unless system("bundle --version", out: File::NULL, err: File::NULL)
    command = "bundle install --local --quiet && bundle list && " \
              "bundle exec ruby -e 'require %(outer); puts Outer.call(20_000)' && cat Gemfile.lock"
    out = compare("sh", "-c", command) { |folder| write_bundle(folder) }
    assert_includes out, "* inner (1.2.3)"
    assert_includes out, "210000\n"
  end

  def test_rdoc_over_a_large_tree
    skip_unless_all
    script = 'require "rdoc"; RDoc::RDoc.new.document(ARGV)'
    compare(RbConfig.ruby, "-e", script, "--", "--quiet", "--force-update", "--ri", "--op", "documents", RbConfig::CONFIG["rubylibdir"],
            patience: 900)
  end

  def test_threads_forks_and_compaction
    out = compare(RbConfig.ruby, "-e", <<~RUBY)
      #{CHURN}
      compacting = Thread.new { 4.times { compact; sleep 0.02 } }
      puts 8.times.map { |i| Thread.new { churn(i, 400) } }.map(&:value).inspect
      children = 4.times.map do |i|
        reader, writer = IO.pipe
        busy = Thread.new { churn(100 + i, 200) }
        pid = fork do
          reader.close
          writer.write([churn(i, 200), Array.new(3) { |k| Thread.new { churn(k, 100) }.value }].inspect)
          compact
          writer.close
        end
        writer.close
        busy.join
        [pid, reader]
      end
      children.each { |pid, reader| puts reader.read; Process.wait(pid); puts $?.exitstatus }
      compacting.join
    RUBY
    assert_equal 9, out.lines.size
  end

  def test_gc_stress
    # A collection at every allocation: little work takes long. Without gems there is less to mark.
    compare(RbConfig.ruby, "--disable-gems", "-e", <<~RUBY)
      #{CHURN}
      GC.stress = true
      puts churn(1, 3)
      puts 3.times.map { |i| Thread.new { churn(i, 1) } }.map(&:value).inspect
      pid = fork { exit!(churn(5, 1).positive? ? 0 : 1) }
      Process.wait(pid)
      GC.stress = false
      puts $?.exitstatus, churn(2, 3000)
    RUBY
  end

  # Ruby's handlers run between its instructions, but the signals arrive at any.
  def test_storm_of_signals
    compare(RbConfig.ruby, "-e", <<~RUBY)
      #{CHURN}
      caught = 0
      %w[USR1 USR2 WINCH].each { |name| Signal.trap(name) { caught += 1; "x" * 1000 } }
      parent = Process.pid
      sender = fork do
        loop { %w[USR1 USR2 WINCH].each { |name| Process.kill(name, parent) }; sleep 0.0002 }
      end
      Thread.new { sleep 0.001 until caught > 0 }.join
      result = 4.times.map { |i| Thread.new { churn(i, 1000) } }.map(&:value)
      Process.kill(:KILL, sender)
      Process.wait(sender)
      puts result.inspect, caught.positive?
    RUBY
  end

  def test_ractors_fibers_and_lazy_loading
    skip "this Ruby has no ractors" unless defined?(Ractor)
    compare(RbConfig.ruby, "-W0", "-e", <<~RUBY)
      #{CHURN}
      # The result's name differs between Ruby's versions.
      take = Ractor.method_defined?(:value) ? :value : :take
      puts 4.times.map { |i| Ractor.new(i) { |n| (1..20_000).sum { |k| (k.to_s * (n + 1)).size } } }.map(&take).inspect
      fibers = 2000.times.map { |i| Fiber.new { churn(i, 3); Fiber.yield(i); i * 2 } }
      puts fibers.sum(&:resume), fibers.sum(&:resume)
      %w[set json yaml openssl net/http optparse erb csv].each do |name|
        require name
      rescue LoadError
        next
      end
      puts YAML.load(YAML.dump((1..3000).to_h { |i| ["k\#{i}", [i] * 5] })).size
      puts JSON.parse(JSON.generate((1..20_000).map { |i| { "n" => i } })).sum { |h| h["n"] }
      puts ObjectSpace.each_object(Class).count.positive?
    RUBY
  end

  # Both raise equal exceptions, and the process goes on.
  def test_exceptions_and_deep_recursion
    compare(RbConfig.ruby, "-e", <<~RUBY)
      #{CHURN}
      def deeper(n) = deeper(n + 1) + "x" * 100
      3.times { begin; deeper(0); rescue SystemStackError => e; puts e.class; end }
      puts 3000.times.sum { |i| begin; raise ArgumentError, "m" * i; rescue => e; e.message.size + e.backtrace.size; end }
      begin; "x" * (2**62); rescue ArgumentError, NoMemoryError => e; puts e.class; end
      puts churn(3, 1000)
    RUBY
  end

  private

  # Runs the command without the library and with it, each in a fresh folder that the block has filled.
  #
  # @return [String] stdout of both
  def compare(*command, patience: PATIENCE_SECONDS, &prepare)
    plain = outcome(command, {}, patience, &prepare)
    assert plain[:success], "without the library: #{plain[:err]}"
    refute_empty plain[:out] + plain[:files].keys.join
    preloaded = outcome(command, { "LD_PRELOAD" => @library, "CULET_CHILDREN" => "all" }, patience, &prepare)
    assert preloaded[:success], preloaded[:err]
    %i[out err].each { |stream| assert_equal plain[stream], preloaded[stream] }
    assert_equal plain[:files], preloaded[:files]
    plain[:out]
  end

  def outcome(command, env, patience)
    Dir.mktmpdir do |parent|
      folder = "#{parent}/work"
      Dir.mkdir(folder)
      yield folder if block_given?
      env = NEUTRAL.merge("HOME" => parent, "TZ" => "UTC", "LC_ALL" => "C.UTF-8").merge(env)
      out, err, status = run_program(*command, env: env, chdir: folder, patience: patience)
      { out: out.gsub(parent, ""), err: err.gsub(parent, ""), success: status.success?, files: digests(folder) }
    end
  end

  def digests(folder)
    Dir.glob("**/*", base: folder).select { |name| File.file?("#{folder}/#{name}") }.sort
       .reject { |name| name.end_with?("created.rid", ".gem") } # they hold the time
       .to_h { |name| [name, Digest::SHA256.hexdigest(File.binread("#{folder}/#{name}").gsub(File.dirname(folder), ""))] }
  end

  def write_bundle(folder)
    { "outer" => 's.add_dependency "inner"', "inner" => "" }.each do |name, dependencies|
      FileUtils.mkdir_p("#{folder}/#{name}/lib")
      File.write("#{folder}/#{name}/#{name}.gemspec", format(GEM_SPECIFICATION, name: name, dependencies: dependencies))
    end
    File.write("#{folder}/inner/lib/inner.rb", "module Inner; def self.call(n) = (1..20).sum * n / 20; end\n")
    File.write("#{folder}/outer/lib/outer.rb", "require \"inner\"\nmodule Outer; def self.call(n) = Inner.call(n); end\n")
    File.write("#{folder}/Gemfile", "source \"https://rubygems.org\"\ngem \"outer\", path: \"outer\"\ngem \"inner\", path: \"inner\"\n")
  end
end
