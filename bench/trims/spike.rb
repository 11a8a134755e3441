# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "culet/allocators"

# The reference for `culet/auto` as a setting of a contender: a C extension of a few lines (test/trim/spike), built for
# the Ruby that runs this.
class Spike < Culet::Allocators::Trim
  SOURCES = %w[extconf.rb spike.c].map { |name| File.expand_path("../../test/trim/spike/#{name}", __dir__) }.freeze

  # @param directory [String] where to build it
  # @raise [Culet::Error] when it cannot be built
  def initialize(directory)
    super()
    @directory = directory
    FileUtils.cp(SOURCES, directory)
    [[RbConfig.ruby, "extconf.rb"], ["make"]].each { |command| run(command) }
  end

  def spec = "spike"

  # @return [Hash{String => String}] see Trim
  def environment(base, **) = { "RUBYOPT" => ["-I#{@directory} -rspike", base["RUBYOPT"]].compact.join(" ") }

  private

  def run(command)
    text, status = Open3.capture2e(*command, chdir: @directory)
    return if status.success?

    raise Culet::Error, "the spike could not be built: #{text.lines.last&.strip}; " \
                        "it needs a C compiler and Ruby's headers"
  end
end
