# frozen_string_literal: true

require "culet/tools/cow"
require "culet/tools/cow/command"

# A command of `culet cow` that has made a file `ready` in the folder READINGS is told by a file `read` there that it has
# been sampled and read since. Without that folder there is no reading.
module Readings
  # In a program written in Ruby: goes on once it has been read.
  AWAIT = "File.write(\"\#{ENV['READINGS']}/ready\", ''); sleep 0.01 until File.exist?(\"\#{ENV['READINGS']}/read\")"

  # @param culet [Array<String>] the words that start the command line
  # @return [Array<String>] the same for such commands
  def self.command(culet) = [*culet[0..-2], "-r#{__FILE__}", culet.last]

  private

  def read(at)
    return if @read || !ENV.key?("READINGS")

    before = @tree
    ready = File.exist?("#{ENV.fetch("READINGS")}/ready")
    super
    @read ||= ready && !@tree.equal?(before)
  end

  def sample(at)
    super
    File.write("#{ENV.fetch("READINGS")}/read", "") if @read
  end
end

Culet::Cow::Command.prepend(Readings)
