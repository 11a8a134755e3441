# frozen_string_literal: true

require "test_helper"

# Programs whose mallocs are sampled by test/profile/sampler.c, and the streams that they write.
module ProfileHelper
  # A block of more than this is sampled, always.
  SAMPLED_BYTES = 50_000
  MOST_BYTES = 90_000

  # One stream, read without the model.
  class Stream
    Frame = Struct.new(:path, :line, :label, :first_line) do
      def to_s = "#{File.basename(path)}:#{line}:#{label}"
    end
    MARKS = { 1 => :truncated, 2 => :gc, 3 => :no_gvl, 4 => :boot, 5 => :full, 6 => :signal, 7 => :deferred }.freeze
    attr_reader :lines

    def initialize(text)
      @lines = text.lines(chomp: true)
      raise "no end" unless @lines.last == "E #{@lines.size - 1}" && @lines.first == "culet-profile 1"

      @names = fields("F").to_h { |line| parse_name(line) }
      @stacks = fields("K").to_h { |line| line.split.then { |id, parent, word| [id, [parent, word.hex]] } }
    end

    def fields(type) = @lines.filter_map { |line| line.delete_prefix("#{type} ") if line.start_with?("#{type} ") }

    # @return [Array<Array>] of all samples: view => samples, and the words of the stack, innermost first
    def sites
      fields("S").map do |line|
        _kind, stack, _label, _type, *views = line.split
        sums = views.each_slice(5).to_h { |view, samples, _blocks, bytes, _| [view, [samples.to_i, bytes.to_f]] }
        [sums, words(stack)]
      end
    end

    # @return [Array] Frames, marks, and Integers for native addresses, of the only site with blocks of a size; where a JIT
    #   has compiled code meanwhile, of one that differs from the others in native frames alone
    def stack(bytes)
      # What was inherited is in use, but was not allocated here.
      found = sites.select { |sums, _| (sums["a"] || sums["l"] || [1, 0]).then { |samples, sum| sum == bytes * samples } }
      raise "#{found.size} sites of #{bytes} bytes" unless found.uniq { |_, words| words.grep_v(Integer).map(&:to_s) }.size == 1

      found.first.last
    end

    # @return [Array<String>] the Ruby frames and marks
    def ruby(bytes) = stack(bytes).grep_v(Integer).map(&:to_s)

    # @return [Array<String>] names of all frames
    def labels = @names.values.map { |name| name[2] }

    private

    def parse_name(line)
      id, first, rest = line.split(" ", 3)
      path, label = rest.split("\t", 2)
      [id.to_i, [path, first.to_i, label]]
    end

    # From the innermost frame to the outermost.
    def words(stack)
      found = []
      until stack == "0"
        stack, word = @stacks.fetch(stack)
        found << meaning(word)
      end
      found
    end

    def meaning(word)
      case word >> 56
      when 0 then word
      when 1
        path, first, label = @names.fetch((word >> 24) & 0xffffffff)
        Frame.new(path, word & 0xffffff, label, first)
      when 2 then MARKS.fetch(word & 0xffffff)
      else raise "unknown word #{word}"
      end
    end
  end

  # @return [String] path of the library
  def self.sampler
    root = TestHelper::ROOT
    @sampler ||= TestHelper.build("-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-D_GNU_SOURCE=", "-DCULET_PROFILE_SAMPLES_MALLOC",
                                  "#{root}/test/profile/sampler.c", *Dir["#{root}/sampler/core/*.c"], "-lpthread", "-ldl")
  end

  # @return [Hash] the environment of a program whose mallocs are sampled
  def sampled(every: 0, **env)
    TestHelper::NEUTRAL.merge("LD_PRELOAD" => ProfileHelper.sampler, "SAMPLER_EVERY" => every.to_s, "SAMPLER_FROM" => SAMPLED_BYTES.to_s,
                              "SAMPLER_TO" => MOST_BYTES.to_s, "CULET_PROFILE" => nil, "CULET_PROFILE_OUT" => nil, **env)
  end

  RUBY = [RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-rculet/profile"].freeze

  # Runs a script, named program.rb, under the profile.
  #
  # @param warning [Regexp, nil] what may be printed
  # @return [Stream]
  def profile(script, every: 0, env: {}, flags: [], warning: nil)
    in_folder(script) do |folder, program|
      file = File.join(folder, "stream")
      out, err, status = run_program(*RUBY, *flags, program, env: sampled(every: every, "CULET_PROFILE" => "1", "CULET_PROFILE_OUT" => file).merge(env))
      assert_equal [true, "", ""], [status.success?, warning ? err.sub(warning, "") : err, out]
      Stream.new(File.read(file))
    end
  end

  # Runs a script that is not started by the environment.
  #
  # @return [String] what it printed
  def inside(script, every: 0, env: {}, flags: [])
    in_folder(script) do |folder, program|
      out, err, status = run_program(*RUBY, *flags, program, env: sampled(every: every).merge(env), chdir: folder)
      assert_equal [true, ""], [status.success?, err]
      out
    end
  end

  private

  def in_folder(script)
    Dir.mktmpdir do |folder|
      program = File.join(folder, "program.rb")
      File.write(program, script)
      yield folder, program
    end
  end
end
