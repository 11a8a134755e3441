# frozen_string_literal: true

# Boots of one application in several manners, in turns; and one of each under strace for its system calls.
#
#   ruby measure.rb [--application FOLDER] [--runs N] [--seed N] [--json FILE] [--no-syscalls]
#
# To be run in the root of bench/newest; bench/require-index does.

require "json"
require "open3"
require "optparse"
require "tmpdir"
require_relative "../../lib/culet/tools/compare/statistics"

# A way to boot.
Manner = Struct.new(:name, :flags, :environment, :bootsnap) do
  def self.all
    library = File.expand_path("../../lib", __dir__)
    culet = ["-I#{library}", "-rculet/require"]
    [new("plain", [], {}, "none"), new("bootsnap's load-path cache", [], {}, "paths"), new("culet/require", culet, {}, "none"),
     new("the same, the index alone", culet, { "CULET_REQUIRE" => "index" }, "none"), new("bootsnap's compile cache", [], {}, "code"),
     new("culet/require and compile cache", culet, {}, "code")]
  end
end

# One process from its start to its end.
class Boot
  SECONDS = 300
  CALLS = %w[openat readlink newfstatat].freeze

  def initialize(manner, application, cache)
    @manner = manner
    @application = application
    @environment = { "MEASURED_CACHE" => cache, "BUNDLE_GEMFILE" => File.join(cache, "Gemfile"), "CULET_REQUIRE_CACHE" => File.join(cache, "culet"), "RUBYOPT" => nil, **manner.environment }
  end

  # @return [Hash] what boot.rb tells, and wall_seconds from the process's start to that
  # @raise [RuntimeError] when it failed
  def call(*before)
    started = now
    out, err, status = Open3.capture3(@environment, "timeout", SECONDS.to_s, *before, *command, chdir: @application)
    raise "#{@manner.name}: #{err.lines.last(5).join}" unless status.success?

    JSON.parse(out.lines.last).merge("wall_seconds" => now - started)
  end

  # @return [Hash{String => Integer}] failed opens, links read, and files looked at by stat
  def calls
    Dir.mktmpdir do |directory|
      file = File.join(directory, "calls")
      call("strace", "-f", "-qq", "-e", "trace=#{CALLS.join(",")}", "-o", file)
      lines = File.readlines(file, encoding: "BINARY")
      { "failed_opens" => lines.count { |line| line.include?(" openat(") && line.include?(" = -1 ") },
        "readlinks" => lines.count { |line| line.include?(" readlink(") }, "stats" => lines.count { |line| line.include?(" newfstatat(") } }
    end
  end

  private

  def command = [RbConfig.ruby, *@manner.flags, File.join(__dir__, "boot.rb"), "./config/environment", @manner.bootsnap]

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# The table.
class Standing
  COLUMNS = [["failed opens", "failed_opens"], ["readlinks", "readlinks"], ["stats", "stats"], ["RSS MB", "rss_bytes"],
             ["own, written MB", "private_dirty_bytes"], ["CPU s", "cpu_seconds"], ["wall s", "wall_seconds"]].freeze

  def initialize(measured)
    @measured = measured
  end

  # @return [String] medians, and in brackets what they are of plain Ruby's
  def to_s
    rows = @measured.keys.map { |name| [name, *COLUMNS.map { |_, key| cell(name, key) }] }
    widths = rows.push(["", *COLUMNS.map(&:first)]).transpose.map { |cells| cells.map(&:size).max }
    rows.rotate(-1).map { |row| row.each_with_index.map { |text, i| i.zero? ? text.ljust(widths[i]) : text.rjust(widths[i]) }.join("  ").rstrip }.join("\n")
  end

  private

  def cell(name, key)
    value = median(name, key)
    return "-" unless value

    "#{figure(value, key)} (#{share(value, median(@measured.keys.first, key))})"
  end

  def median(name, key)
    values = @measured.fetch(name).filter_map { |run| run[key] }
    Culet::Compare::Statistics.median(values) unless values.empty?
  end

  def figure(value, key)
    case key
    when /_bytes\z/ then format("%.1f", value / 1_000_000.0)
    when /_seconds\z/ then format("%.2f", value)
    else value.round.to_s
    end
  end

  def share(value, of) = of.zero? ? "-" : format("%.1f %%", 100.0 * value / of)
end

application = "/usr/share/redmine"
runs = 7
seed = 1
json = nil
syscalls = true
OptionParser.new do |options|
  options.on("--application FOLDER") { |folder| application = folder }
  options.on("--runs N", Integer) { |number| runs = number }
  options.on("--seed N", Integer) { |number| seed = number }
  options.on("--json FILE") { |file| json = file }
  options.on("--no-syscalls") { syscalls = false }
end.parse!

Dir.mktmpdir do |cache|
  # With bootsnap in it for all of them alike; it is loaded where it is measured.
  File.write(File.join(cache, "Gemfile"), %(eval_gemfile "#{application}/Gemfile"\ngem "bootsnap", require: false\n))
  boots = Manner.all.to_h { |manner| [manner.name, Boot.new(manner, application, cache)] }
  measured = boots.transform_values { [] }
  # What caches have to be filled is filled: by the second boot, as folders must be some seconds old.
  boots.each_value { |boot| 2.times { boot.call } }
  random = Random.new(seed)
  runs.times do |round|
    boots.to_a.shuffle(random: random).each { |name, boot| measured.fetch(name) << boot.call }
    warn "round #{round + 1} of #{runs}"
  end
  boots.each { |name, boot| measured.fetch(name) << boot.calls } if syscalls
  File.write(json, JSON.pretty_generate(measured)) if json
  first = measured.values.first.first
  puts "#{RUBY_DESCRIPTION}; #{first["features"]} features, a load path of #{first["load_path"]}; medians of #{runs} boots in turns, " \
       "in brackets: of plain Ruby's", "", Standing.new(measured)
end
