# frozen_string_literal: true

require_relative "requires_helper"

# A program runs as it would without the recorder: each of these runs twice, and says the same both times.
class RequiresBehaviourTest < Minitest::Test
  include RequiresHelper

  # What a program says of itself; what belongs to the recorder is left out.
  SAY = <<~RUBY.freeze
    require "json"
    def say(what) = puts(JSON.generate(what))
    def features = $LOADED_FEATURES.reject { |one| one.start_with?("#{ROOT}/lib/", "#{ROOT}/boot/") }
    def attempt
      ["value", yield]
    rescue Exception => e
      [e.class, e.message, e.respond_to?(:path) ? e.path : nil, e.backtrace, e.cause&.class]
    end
  RUBY

  FILES = { "say.rb" => SAY, "good.rb" => "GOOD = caller", "lines.rb" => "LINES = caller_locations.map { |one| [one.path, one.lineno, one.label] }",
            "relative.rb" => "require_relative 'good'; RELATIVE = __dir__", "raises.rb" => "def raiser = raise(ArgumentError, 'no')\nraiser",
            "syntax.rb" => "def (", "missing.rb" => "require 'nowhere_to_be_found'", "throws.rb" => "throw :out, 5",
            "leaves.rb" => "at_exit { puts :bye }; exit 7", "wrapped.rb" => "WRAPPED = 1; $wrapped = Module.nesting.size" }.freeze

  def test_values_features_and_backtraces
    same(<<~RUBY)
      say [attempt { require "good" }, attempt { require "good" }, GOOD, attempt { require_relative "lines" }, LINES]
      say attempt { load File.join(__dir__, "relative.rb") }
      say attempt { load File.join(__dir__, "wrapped.rb"), true }
      say [attempt { load "wrapped.rb", Module.new }, $wrapped]
      %w[raises syntax missing].each { |name| say attempt { require name } }
      say attempt { require_relative "raises" }
      say attempt { load "raises.rb" }
      say attempt { load "nowhere.rb" }
      say attempt { require nil }
      say attempt { require }
      say attempt { load }
      say attempt { require_relative 5 }
      say attempt { Kernel.require "set" }
      say attempt { Object.new.send(:require, "English") }
      say attempt { eval("require_relative 'good'") }
      say attempt { eval("require_relative 'good'", binding, File.join(__dir__, "other.rb")) }
      say catch(:out) { require "throws" }
      say attempt { require Struct.new(:to_path).new("ostruct") }
      say features
      say $LOAD_PATH
      say [Kernel.private_method_defined?(:require), Kernel.private_method_defined?(:load), Kernel.respond_to?(:require_relative),
           method(:load).arity, method(:require_relative).arity, method(:gem_original_require).arity, Kernel.instance_method(:gem_original_require).owner.to_s,
           Kernel.instance_method(:require).source_location, Kernel.private_instance_methods(false).sort]
    RUBY
  end

  def test_exit_status_and_handlers
    assert_equal 7, same("at_exit { say [$!.class, features.size] }; require 'leaves'").exitstatus
    assert_equal 1, same("require 'raises'").exitstatus
  end

  def test_without_rubygems
    same("say [attempt { require 'good' }, GOOD, attempt { require 'missing' }, attempt { require_relative 'lines' }, LINES, features]", "--disable-gems")
  end

  # Whoever puts himself before Kernel#require later, by an alias or in front of Kernel, is not in an endless recursion.
  def test_others_in_the_chain
    same(<<~RUBY)
      $asked = []
      module Kernel
        alias_method :other_require, :require
        def require(name) = ($asked << [:alias, name]; other_require(name))
        private :require
      end
      module Before
        def require(name) = ($asked << [:prepended, name]; super)
        def load(*) = ($asked << [:load]; super)
        def require_relative(name) = ($asked << [:relative, name]; super(File.join(__dir__, name)))
      end
      Kernel.prepend(Before)
      Object.prepend(Module.new { def require(name) = ($asked << [:object, name]; super) })
      say [attempt { require "good" }, GOOD, attempt { load "lines.rb" }, attempt { require_relative "wrapped" }, attempt { require "missing" }, $asked, features]
      class << Kernel
        alias_method :other_require, :require
        def require(name) = ($asked << [:kernel, name]; other_require(name))
      end
      say [attempt { Kernel.require "lines" }, $asked.last]
    RUBY
  end

  def test_bundler
    write("Gemfile" => "")
    same(<<~RUBY, env: { "BUNDLE_GEMFILE" => path("Gemfile") })
      require "bundler/setup"
      say [attempt { require "good" }, GOOD, attempt { require "missing" }, attempt { require "set" }, attempt { require "rexml/document" }]
      say features
    RUBY
  end

  # The index of the load path takes the place of Ruby's function below the recorder.
  def test_culets_own_index
    same(<<~RUBY, env: { "CULET_REQUIRE_CACHE" => path("cache") })
      require "#{ROOT}/lib/culet/require"
      say [attempt { require "good" }, GOOD, attempt { require "missing" }, attempt { require "good" }, features]
      say Culet::Require.figures.slice(:found, :real_paths)
    RUBY
    assert_equal "require", feature(JSON.parse(File.read(path("report.json"))), "good.rb")["how"]
  end

  # Here with nothing of its application.
  def test_the_program_of_the_benchmark
    write("bundler/setup.rb" => "$LOADED_FEATURES << '#{ROOT}/workloads/rails/application.rb'; Blog = nil",
          "rack/mock.rb" => "module Rack; MockRequest = Struct.new(:application); end")
    document = record(*ruby("#{ROOT}/bench/require/requests.rb", "0"), env: { "CULET_WORKLOAD_DIR" => new_folder })
    assert_equal 0, document["exit_status"], @err
  end

  def test_several_threads_ask_for_one_file
    write("slow.rb" => "sleep 0.2; SLOW = 1")
    same("say Array.new(8) { Thread.new { require 'slow' } }.map(&:value).sort_by(&:to_s)")
  end

  def test_output_input_and_what_is_inherited
    same("say [$stdin.read, ARGV, $0, Process.ppid == ENV['PARENT'].to_i, Dir.children('/proc/self/fd').size]; warn 'aside'")
  end

  def test_traces_of_others
    same(<<~RUBY)
      seen = []
      trace = TracePoint.new(:c_call, :call, :raise, :script_compiled) { |one| seen << [one.event, one.method_id] if %i[require load require_relative gem_original_require].include?(one.method_id) }
      trace.enable { require "good"; load "lines.rb"; attempt { require "missing" } }
      say seen
    RUBY
  end

  private

  # @return [Process::Status] of the run without the recorder
  def same(program, *options, env: {})
    write(FILES.merge("main.rb" => "require_relative 'say'\n#{program}"))
    command = [RbConfig.ruby, *options, "-I#{@folder}", path("main.rb")]
    out, err, status = run_program(*command, env: TestHelper::NEUTRAL.merge(env), chdir: @folder, stdin: "in")
    FileUtils.rm_f(path("Gemfile.lock"))
    recorded_out, recorded_err, = run_culet("requires", "--json", "--out", path("report.json"), "--", *command,
                                            env: TestHelper::NEUTRAL.merge(env), chdir: @folder, stdin: "in")
    assert_equal lines(out), lines(recorded_out)
    assert_equal err, recorded_err.lines.grep_v(/\Aculet: wrote/).join
    refute_empty out + err
    assert_equal status.exitstatus, JSON.parse(File.read(path("report.json")))["exit_status"]
    status
  end

  def lines(text) = text.lines.map { |line| line.start_with?("[", "{") ? JSON.parse(line) : line }
end
