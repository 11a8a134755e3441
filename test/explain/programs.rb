# frozen_string_literal: true

require "culet/allocators"
require "culet/tools/compare/bundle"
require "rbconfig"
require "timeout"

# Programs whose memory is as it is for a known cause, in programs/KIND/NAME.rb. KIND is the verdict that `culet explain` is
# to come to. Each begins with what is known of it:
#
#   says        the cause, in a phrase; the line with the comment HERE is to blame for it
#   shape       how it is built: small, or on real gems; single, threaded or forked
#   loads       entries of culet that are loaded by RUBYOPT; "agent" where nothing stands
#   env         variables
#   allocators  those that it is for; all, where nothing stands
#   elsewhere   verdicts on other allocators than glibc, where they differ
#   also        verdicts that are true as well
#   and what test/explain/programs_test.rb checks, in MB: growth and mapped (a minute, of a process), peak, free (of malloc),
#   free_slots, garbage, unshared (of each worker), code
module ExplainPrograms
  ROOT = File.expand_path("../..", __dir__)
  FOLDER = File.join(__dir__, "programs")
  GEMFILE = File.join(__dir__, "Gemfile")
  ALLOCATORS = %w[glibc jemalloc culet].freeze
  HEAD = /\A# (\w+): (.+)\n/
  NEUTRAL = %w[LD_PRELOAD MALLOC_ARENA_MAX MALLOC_CONF GLIBC_TUNABLES RUBYOPT CULET_LIMIT].to_h { |name| [name, nil] }.freeze
  READY_SECONDS = 120
  END_SECONDS = 20

  # One of them.
  class Program
    # @return [String] "KIND/NAME"
    attr_reader :name
    # @return [Hash{String => String}] what its head says
    attr_reader :head

    # @param path [String] below FOLDER
    def initialize(path)
      @name = path.delete_suffix(".rb")
      @head = File.readlines(file).filter_map { |line| line.match(HEAD)&.captures }.to_h
    end

    def file = File.join(FOLDER, "#{name}.rb")

    # @return [String] the verdict on glibc
    def kind = File.dirname(name)

    # @return [Boolean] whether it is for that
    def for?(allocator) = !head.key?("allocators") || head["allocators"].split(", ").include?(allocator)

    # @return [Array<String>] verdicts that are right there, the best first
    def verdicts(allocator)
      first = allocator == "glibc" || !head.key?("elsewhere") ? [kind] : [*head["elsewhere"].split(", "), kind]
      [*first, *head["also"].to_s.split(", ")].uniq
    end

    # @return [Integer, nil] of the line that is to blame
    def line = File.readlines(file).index { |text| text.include?("# HERE") }&.succ

    def gems? = File.read(file).match?(%r{bundler/setup|rails_application|Load\.sidekiq})

    def environment(allocator)
      entries = (head["loads"] || "agent").split.map { |entry| "-r#{ROOT}/lib/culet/#{entry}.rb" }
      variables = head["env"].to_s.split.to_h { |word| word.split("=", 2) }
      NEUTRAL.merge(gems? ? ExplainPrograms.bundle.environment : {}, variables, "RUBYOPT" => entries.join(" "))
             .merge(Culet::Allocators.parse(allocator).environment({}))
    end

    # Runs it until the block is done.
    #
    # @param env [Hash{String => String}] further variables
    # @yieldparam pid [Integer] the root of the processes to explain
    # @return [Object] what the block returned
    # @raise [RuntimeError] when it does not become ready, or does not end on SIGTERM
    def run(allocator: "glibc", env: {}, err: File::NULL)
      out, writer = IO.pipe
      program = Process.spawn(environment(allocator).merge(env), RbConfig.ruby, file, in: File::NULL, out: writer, err: err, pgroup: true)
      writer.close
      yield ready(out)
    ensure
      finish(program) if program
      [out, writer].compact.each { |io| io.close unless io.closed? }
    end

    private

    def ready(out)
      line = Timeout.timeout(READY_SECONDS) { out.gets }
      Integer(line.to_s[/\Aready (\d+)$/, 1] || raise("#{name} does not become ready: #{line.inspect}"), 10)
    end

    def finish(program)
      Process.kill("TERM", program)
      Timeout.timeout(END_SECONDS) { Process.wait(program) }
    rescue Timeout::Error
      Process.kill("KILL", -program)
      Process.wait(program)
      raise "#{name} does not end on SIGTERM"
    end
  end

  # @return [Array<Program>]
  def self.all = @all ||= Dir.glob("*/*.rb", base: FOLDER).sort.map { |path| Program.new(path) }

  # @return [Culet::Compare::Bundle] the gems of some of them; not installed yet, perhaps
  def self.bundle = @bundle ||= Culet::Compare::Bundle.new(name: "explain", gemfile: GEMFILE)
end
