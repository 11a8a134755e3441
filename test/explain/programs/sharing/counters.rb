# frozen_string_literal: true

# says: threads of the workers count the visits of each object
# shape: small, forked and threaded
# unshared: 30
require_relative "../../load"

class Page
  def initialize(number) = (@visits = number; @text = "page #{number} ".ljust(300, "x"))
  def visit = @visits += 1 # HERE
end
PAGES = Array.new(150_000) { |number| Page.new(number) }
4.times { GC.start }
Load.workers(3) do
  Load.threads(3, every: 0.1) { |thread| PAGES.each_slice(3) { |pages| pages[thread].visit } unless Thread.current[:done] && Thread.current[:done] = true }
  PAGES.each { |page| page.instance_variable_get(:@text).setbyte(0, 80) }
  Load.repeat(every: 0.2) { Load.work(0) }
end
