# frozen_string_literal: true

require_relative "../scope/scope_helper"
require "culet/tools/cow"

# Families of processes to look at: a parent with what it forked, up and idle when it is yielded, or at work for ever.
module CowHelper
  include ScopeHelper

  RUBY = [RbConfig.ruby, "--disable-gems"].freeze

  # Forks as often as said, each child does its work and says so; the parent says `up` once all have.
  FORKS = <<~RUBY
    def family(count)
      reader, writer = IO.pipe
      count.times { |number| fork { yield number; writer.write("x"); sleep } }
      reader.read(count)
      puts "up"
      $stdout.flush
      sleep
    end
  RUBY

  # What the workers of a server do: they write some of what they inherited and have objects of their own.
  WORDS = "#{FORKS}WORDS = Array.new(60_000) { |i| \"word number \#{i} of many words\" }\nGC.start\n".freeze
  WORKERS = "#{WORDS}family(3) { |n| WORDS.each_slice(10 + n) { |words| words.first << \"!\" }; " \
            "$own = Array.new(20_000) { |i| \"own \#{i}\" * 3 }; GC.start }".freeze

  # @yieldparam pid [Integer] of the parent
  def with_family(*command, env: {}, settled: true)
    with_program(*command, env: TestHelper::NEUTRAL.merge(env)) do |pid|
      settle(pid) if settled
      yield pid
    end
  end

  # Waits until no process of the family has taken processor time for a while.
  def settle(pid)
    still = 0
    last = nil
    600.times do
      spent = Culet::Processes::Tree.new(pid).pids.map { |one| [one, Culet::Processes::Cpu.seconds(one)] }
      still = spent == last ? still + 1 : 0
      return if still == 6

      last = spent
      sleep(0.05)
    end
    flunk("process #{pid} does not come to rest")
  end

  # @return [Culet::Cow::ProcessTree]
  def family(*pids, **options) = Culet::Cow::ProcessTree.new(pids, **options)

  # @param member [Culet::Cow::ForkedProcess]
  # @param standing [Symbol]
  # @return [Integer] bytes of it in levels of that name
  def bytes_of(member, standing, *levels) = levels.sum { |level| member.breakdown.levels[level]&.public_send(standing).to_i }
end
