# frozen_string_literal: true

require "culet/model/statistics"

# What the first write to a page costs after a fork.
module FaultCost
  PAGE = 4096
  PAGES = 8192
  RUNS = 7

  # @return [Array<Float>] seconds of CPU time for one page, medians of some runs: where the copy has ended, so that the
  #   page stays, and where it lives, so that the page is copied
  def self.measure
    text = "x" * (PAGE * PAGES)
    write(text)
    costs = Array.new(RUNS) { [false, true].map { |alive| write_after_fork(text, alive: alive) - write(text) } }
    costs.transpose.map { |seconds| Culet::Statistics.median(seconds) / PAGES }
  end

  # @return [Float] seconds of CPU time to write to each page, of which a forked copy had each
  def self.write_after_fork(text, alive:)
    copy, release = copy_of_process
    release.close unless alive
    Process.wait(copy) unless alive
    write(text)
  ensure
    release.close
    Process.wait(copy) if alive
  end
  private_class_method :write_after_fork

  # @return [Array(Integer, IO)] process number of the copy, and a pipe: closing the pipe ends the copy
  def self.copy_of_process
    wait, release = IO.pipe
    copy = fork do
      release.close
      wait.read
      exit!
    end
    wait.close
    [copy, release]
  end
  private_class_method :copy_of_process

  # @return [Float] seconds of CPU time to write to each page
  def self.write(text)
    before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    PAGES.times { |page| text.setbyte(page * PAGE, 1) }
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before
  end
  private_class_method :write
end
