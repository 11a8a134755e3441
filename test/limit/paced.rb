# frozen_string_literal: true

# Has a program of the tests wait for the thread that keeps its limit: on a busy machine that may not run for a second, in
# which the program would be killed. In groups of these sizes it reads the usage every 80 ms at least.
module Paced
  LATE_SECONDS = 0.15
  # What each program calls in its loop, and how often in a megabyte or less.
  CALLS = { "images" => [-> { require("digest") && Digest::SHA256.singleton_class }, :digest, 16], "slices" => [-> { File }, :read, 1],
            "documents" => [-> { require("json") && JSON.singleton_class }, :parse, 1], "garbage" => [-> { String }, :*, 100] }.freeze
  @calls = @readings = 0
  @read_at = Culet::Clock.now

  class << self
    def install(name)
      owner, method, often = CALLS.fetch(name)
      owner.call.prepend(Module.new { define_method(method) { |*words| super(*words).tap { Paced.call(often) } } })
    end

    def call(often)
      return unless ((@calls += 1) % often).zero?

      sleep 0.005 while readings == @readings && Culet::Clock.now - @read_at > LATE_SECONDS
      note(readings)
    end

    private

    def readings = Culet::Limit.send(:counts)[:readings]

    def note(number)
      return if number == @readings

      @readings = number
      @read_at = Culet::Clock.now
    end
  end
end

Paced.install(File.basename($PROGRAM_NAME == "-e" ? ARGV.first : $PROGRAM_NAME, ".rb"))
