# frozen_string_literal: true

module Bench
  # A file of JSON, a line for each run, with which a command that is called again goes on.
  class Journal
    # @return [Array<Hash>] those that were there
    attr_reader :lines

    # @raise [Culet::Error] where another command writes the file, or it is no such file
    def initialize(path)
      @file = File.open(path, File::RDWR | File::CREAT | File::APPEND)
      raise Culet::Error, "another run writes #{path}" unless @file.flock(File::LOCK_EX | File::LOCK_NB)

      whole = @file.read[/\A.*\n/m].to_s # the last line may be cut
      @file.truncate(whole.bytesize)
      @lines = whole.lines.map { |line| JSON.parse(line) }
    rescue JSON::ParserError
      raise Culet::Error, "#{path} is no record of runs; remove it, or name another file"
    end

    # @param line [Hash]
    def add(line)
      @file.write("#{JSON.generate(line)}\n")
      @file.flush
    end
  end
end
