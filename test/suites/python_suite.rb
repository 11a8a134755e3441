# frozen_string_literal: true

require "fileutils"
require "rexml/document"
require_relative "debian"
require_relative "outcomes"
require_relative "program"

module Suites
  # Python's own tests, from Debian's package of them, with every object taken from malloc (PYTHONMALLOC=malloc).
  class PythonSuite
    PYTHON = "/usr/bin/python3"
    # Threads, processes, memory, and whatever handles many or large objects.
    TESTS = %w[test_gc test_thread test_threading test_threading_local test_threadedtempfile test_threadsignals test_fork1 test_wait4
               test_multiprocessing_fork test_subprocess test_mmap test_json test_sqlite3 test_ssl test_list test_dict test_set test_bytes
               test_unicode test_array test_ctypes test_zlib test_bz2 test_lzma test_pickle test_weakref test_memoryview test_buffer
               test_io test_os test_posix test_queue test_tempfile test_hashlib test_xml_etree test_xml_etree_c test_decimal test_re
               test_exceptions test_capi test_struct test_itertools test_collections test_functools test_generators test_coroutines
               test_descr test_ast test_compile test_marshal test_deque test_heapq test_long test_int test_sys test_signal test_tracemalloc
               test_tarfile test_zipfile test_gzip test_csv test_random test_codecs].freeze
    SECONDS = 3_000
    TEST_SECONDS = 900
    NEUTRAL = %w[LD_PRELOAD MALLOC_ARENA_MAX MALLOC_CONF GLIBC_TUNABLES CULET_CHILDREN CULET_INHERITED PYTHONPATH PYTHONHOME]
              .to_h { |name| [name, nil] }.freeze
    private_constant :PYTHON, :SECONDS, :TEST_SECONDS, :NEUTRAL

    # @param library [String] what is preloaded
    # @param work [String] a scratch folder
    # @param only [Array<String>] e.g. "test_gc"; all of TESTS where none is named
    # @raise [Unavailable]
    def initialize(library:, work:, only: [])
      raise Unavailable, "there is no #{PYTHON}" unless File.executable?(PYTHON)

      @library = library
      @work = work
      @tests = only.empty? ? TESTS : only
      Debian.install("libpython#{version}-testsuite")
      @tests = @tests.select { |name| Dir.exist?("#{folder}/#{name}") || File.exist?("#{folder}/#{name}.py") }
    end

    def known = {}

    # @param preload [Boolean]
    # @return [Outcomes]
    def run(preload) = run_tests(preload, @tests)

    # @param name [String] of a test, as "test.test_gc.GCTests.test_list"
    # @param preload [Boolean]
    # @return [Symbol] what became of it
    def again(name, preload)
      run_tests(preload, [name[/\Atest\.(\w+)\./, 1] || @tests].flatten, "-m", name)[name]
    end

    # @param path [String] the report that the runner writes
    # @return [Outcomes]
    def self.parse(path)
      document = REXML::Document.new(File.read(path))
      by_name = {}
      document.elements.each("//testcase") do |test|
        children = test.elements.map(&:name)
        kind = if children.intersect?(%w[failure error]) then :failed
               else children.include?("skipped") || test.attributes["result"] == "skipped" ? :skipped : :passed
               end
        name = test.attributes["name"].sub(/ [\[(].*\z/m, "") # subtests count as their test
        by_name[name] = kind unless by_name[name] == :failed
      end
      Outcomes.new(by_name)
    end

    private

    def version = @version ||= File.realpath(PYTHON)[/python(\d+\.\d+)\z/, 1]
    def folder = "/usr/lib/python#{version}/test"

    # Each file in a process of its own, so that one that dies takes no other with it.
    def run_tests(preload, tests, *options)
      here = File.join(@work, preload ? "culet" : "glibc")
      report = File.join(here, "report.xml")
      FileUtils.mkdir_p(here)
      FileUtils.rm_f(report)
      text, wrong = Program.run(PYTHON, "-m", "test", "-j1", "--timeout", TEST_SECONDS.to_s, "--junit-xml", report, *options, *tests,
                                environment: environment(preload, here), directory: here, seconds: SECONDS)
      return Outcomes.new(complaints: [wrong || text.lines.last.to_s.strip]) unless File.exist?(report)

      # A file of tests that is ended by a signal or the clock reports no test at all.
      self.class.parse(report) + Outcomes.new(complaints: [*wrong, *text.lines.grep(/crashed|timed out|env changed and failed/i).map(&:strip).first(5)])
    end

    def environment(preload, here)
      NEUTRAL.merge("PYTHONMALLOC" => "malloc", "TMPDIR" => here, "LC_ALL" => "C.UTF-8", "LD_PRELOAD" => (@library if preload),
                    "CULET_CHILDREN" => ("all" if preload))
    end
  end
end
