# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/runtime/blackbox/folder"
require "culet/tools/autopsy"

# Programs with a black box, and what culet autopsy says of them.
module BoxHelper
  LIBRARY = File.join(TestHelper::ROOT, "lib")
  MALLOC = File.join(TestHelper::ROOT, "allocator/build/libculet.so")

  # Code that waits until what was begun later has been written.
  #
  # @param kind [String] readings or profiles
  def self.recorded(kind)
    "former = Culet::BlackBox.stats[:#{kind}]; sleep 0.05 until Culet::BlackBox.stats[:#{kind}] >= former + 2"
  end

  def setup
    super
    @folder = new_folder
  end

  private

  # @param code [String] of a program that has loaded culet/auto
  # @return [Array(String, String, Process::Status)] stdout, stderr, status
  def run_boxed(code, *words, env: {}, **options)
    run_program(RbConfig.ruby, "-I#{LIBRARY}", "-rculet/auto", "-e", code, *words,
                env: { "CULET_BLACKBOX" => @folder, **env }, **options)
  end

  # @return [Array<String>] paths of the black boxes
  def boxes = Dir.glob(File.join(@folder, "*.blackbox"))

  def box = Culet::Autopsy::Box.load(boxes.fetch(0))

  # Without the kernel's log, which is not the test's.
  def findings(one = box, log: Culet::Autopsy::KernelLog.new([]), alive: false)
    Culet::Autopsy::Findings.new(one, alive: alive, log: log)
  end

  # @return [Hash] what `culet autopsy --json` prints
  def autopsy(*words)
    out, = assert_culet_success("autopsy", *words, "--json")
    JSON.parse(out)
  end
end
