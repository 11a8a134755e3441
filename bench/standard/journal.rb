# frozen_string_literal: true

require "digest"
require "json"

module StandardBench
  # The runs of a measurement that has not ended, a line for each, in a file beside its results. The command, called
  # again, takes them from there and goes on. The first line says of what they are.
  class Journal
    # @return [Hash] what must be the same for runs to be compared
    def self.identity(contenders)
      libraries = contenders.to_h do |contender|
        [contender.name, contender.library ? Digest::SHA256.file(contender.library).hexdigest : contender.version]
      end
      { "ruby" => RUBY_DESCRIPTION, "allocators" => libraries }
    end

    # @return [Integer] runs that were there
    attr_reader :size

    # @param identity [Hash]
    # @raise [Culet::Error] where the file is another run's
    def initialize(path, identity)
      @path = path
      @file = File.open(path, File::RDWR | File::CREAT | File::APPEND)
      raise Culet::Error, "another run writes #{path}" unless @file.flock(File::LOCK_EX | File::LOCK_NB)

      @runs = Hash.new { |runs, key| runs[key] = [] }
      first, *lines = whole_lines
      check(first, identity)
      lines.each { |line| @runs[line.values_at("program", "contender")] << Bench::Outcome.new(*line.values_at("figures", "reason")) }
      @size = lines.size
    end

    # @yieldreturn [Bench::Outcome] where no run is left in the file
    def outcome(program, contender)
      @runs[[program.name, contender.name]].shift || yield.tap do |outcome|
        write({ "program" => program.name, "contender" => contender.name, **outcome.to_h })
      end
    end

    # The measurement has ended.
    def remove = File.delete(@path)

    private

    # The last line may be cut.
    def whole_lines
      text = @file.read
      whole = text[/\A.*\n/m].to_s
      @file.truncate(whole.bytesize)
      whole.lines.map { |line| JSON.parse(line) }
    rescue JSON::ParserError
      raise Culet::Error, "#{@path} is no record of runs; remove it, or name another --out"
    end

    def check(first, identity)
      return write(identity) unless first
      return if first == identity

      raise Culet::Error, "#{@path} has runs of other allocators or on another Ruby; repeat that command, or remove " \
                          "the file to start anew"
    end

    def write(line)
      @file.write("#{JSON.generate(line)}\n")
      @file.flush
    end
  end
end
