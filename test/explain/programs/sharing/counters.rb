# frozen_string_literal: true

# says: threads of the workers count the visits of each object
# shape: small, forked and threaded
# unshared: 20
require_relative "../../load"

class Page
  def initialize(number)
    @number = number
    @visits = 0
    @text = "page #{number} ".ljust(300, "x")
  end

  def visit
    @visits += 1 # HERE
    @text.setbyte(0, 80)
  end
end
PAGES = Array.new(100_000) { |number| Page.new(number) }
4.times { GC.start }
Load.workers(3) do
  Array.new(3) { |thread| Thread.new { PAGES.each_with_index { |page, at| page.visit if at % 3 == thread } } }.each(&:join)
  visited = 0
  Load.repeat(every: 0.1) { 100.times { PAGES[(visited += 7) % PAGES.size].visit } }
end
