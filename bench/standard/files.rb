# frozen_string_literal: true

module StandardBench
  # The result files of a command: FILE and, for the programs in Ruby, FILE-ruby.
  class Files
    # @param out [String] path
    # @param add [Boolean] whether the files keep the results of other programs
    # @raise [Culet::Error] where a file to add to has other allocators or is of another machine
    def initialize(out, contenders:, programs:, add: false)
      @out = out
      @contenders = contenders
      @add = add
      kinds(programs).each { |ruby| merged(file([], ruby: ruby), path(ruby: ruby)) }
    end

    def write(results)
      results.group_by { |result| in_ruby?(result.subject) }.each do |ruby, part|
        path = path(ruby: ruby)
        merged(file(part, ruby: ruby), path, subjects: part.map { |result| result.subject.name }).save(path)
      end
    end

    private

    def kinds(programs) = programs.map { |program| in_ruby?(program) }.uniq

    def in_ruby?(program) = !program.ruby.nil?

    def path(ruby:) = ruby ? @out.sub(/(\.json)?\z/, "-ruby\\1") : @out

    def file(results, ruby:)
      versions = @contenders.to_h { |contender| [contender.name, contender.version] }
      Bench::ResultFile.of(title: "Standard programs#{" in Ruby" if ruby}", rows: results.flat_map(&:rows),
                           command: Bench::ResultFile.command_line.sub(/ --add\b/, ""),
                           environment: { "allocators" => versions.compact }, remarks: results.flat_map(&:remarks))
    end

    # @return [Bench::ResultFile] the file with the results of others at the path
    def merged(file, path, subjects: [])
      return file unless @add && File.exist?(path)

      earlier = Bench::ResultFile.read(path)
      unless comparable?(earlier, file)
        raise Culet::Error, "#{path} has results of other allocators or of another machine; name its allocators, or " \
                            "write another file"
      end
      earlier.with(file, subjects: subjects)
    end

    def comparable?(earlier, file)
      [[], @contenders.map(&:name).sort].include?(earlier.rows.map(&:contender).uniq.sort) &&
        [earlier, file].map { |one| one.environment.slice("ruby", "glibc", "cores", "allocators") }.uniq.one?
    end
  end
end
