# frozen_string_literal: true

require "fileutils"
require "rbconfig"

# The environment for the commands of a page: a folder with the files that the pages name, `culet` and stand-ins for
# servers in PATH, and a running server, whose number replaces 4242 and the names `puma` and `sidekiq`.
class Reader
  ROOT = File.expand_path("../..", __dir__)
  FIXTURES = File.join(ROOT, "test/fixtures/docs")
  # Verbs that take a process by its name.
  NAMED = /\b(culet (?:explain|report|map|snapshot|diff|cow|strings|retain|doctor|profile|limit|top|live|requires --unused)) (?:puma|sidekiq)\b/
  NUMBER = /\b4242\b/
  # Durations of minutes are shortened.
  SHORTER = { /--every \w+ --for \w+/ => "--every 1s --for 2s", /--for (?:60s|5m)\b/ => "--for 1s" }.freeze
  # Scripts that run instead of the servers; each ends by itself.
  PROGRAMS = { "puma" => "server.rb 0.5", "sidekiq" => "job.rb", "bin/rails" => "rails.rb" }.freeze
  private_constant :FIXTURES, :NAMED, :NUMBER, :SHORTER, :PROGRAMS

  def self.needs_server?(code) = NUMBER.match?(code) || NAMED.match?(code)

  # @return [String] where the commands run
  attr_reader :folder

  # @param base [String] an empty folder
  def initialize(base)
    @folder = File.join(base, "app")
    @programs = File.join(base, "bin")
    @home = File.join(base, "home")
    FileUtils.mkdir_p([@programs, @home, File.join(@folder, "bin")])
    FileUtils.cp_r("#{FIXTURES}/.", @folder)
    write_culet
    write_program(File.join(@programs, "bundle"), "[ \"$1\" != exec ] || shift", "exec \"$@\"")
    PROGRAMS.each do |name, script|
      folder = name.include?("/") ? @folder : @programs
      write_program(File.join(folder, name), "exec #{RbConfig.ruby} #{@folder}/#{script} \"$@\"")
    end
  end

  # @param blocks [Array<Page::Block>] those whose first line names a file are written to it
  def write_files(blocks)
    blocks.select(&:file).each do |block|
      path = File.join(@folder, block.file)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, block.code)
    end
  end

  def environment
    libraries = ["#{ROOT}/lib", *$LOAD_PATH.grep(%r{\A#{Regexp.escape(ROOT)}/\.gems/})]
    paths = [@programs, File.dirname(RbConfig.ruby), ENV.fetch("PATH")].join(":")
    TestHelper::NEUTRAL.merge("PATH" => paths, "HOME" => @home, "XDG_CACHE_HOME" => nil,
                              "RUBYLIB" => libraries.join(":"))
  end

  # @return [Array<String>] the command of the server
  def server = ["env", "CULET_PROFILE=1", RbConfig.ruby, "-rculet/unused", "-rculet/profile", "#{@folder}/server.rb"]

  # @param commands [Array<Page::Block>]
  # @param pid [Integer, nil] of the server
  # @return [String] a shell script that prints where each block begins
  def script(commands, pid)
    commands.map { |block| "echo '==line #{block.line}'\n#{typed(block.code, pid)}" }.join("\n")
  end

  private

  def typed(code, pid)
    short = SHORTER.reduce(code) { |text, (long, short)| text.gsub(long, short) }
    short.gsub(NAMED, "\\1 #{pid}").gsub(NUMBER, pid.to_s)
  end

  # Status 1 of `culet doctor` is not a failure: its findings depend on the machine. Programs that are compared stop
  # until they have been sampled.
  def write_culet
    command = "#{RbConfig.ruby} -I#{ROOT}/lib -r#{ROOT}/bin/gems.rb $more #{ROOT}/exe/culet \"$@\""
    write_program(File.join(@programs, "culet"), "[ \"$1\" != compare ] || more=-r#{ROOT}/test/compare/sampled.rb",
                  "[ \"$1\" = doctor ] || exec #{command}", "#{command} || [ $? = 1 ]")
  end

  def write_program(path, *lines)
    File.write(path, ["#!/bin/sh", *lines, ""].join("\n"))
    File.chmod(0o755, path)
  end
end
