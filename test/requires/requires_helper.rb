# frozen_string_literal: true

require "test_helper"
require "json"

# What tests of `culet requires` share: a folder with Ruby files, and a recorded run of a program over them.
module RequiresHelper
  def setup
    super
    @folder = new_folder
  end

  def path(name) = File.join(@folder, name)

  # @param files [Hash{String => String}] name => text
  def write(files)
    files.each do |name, text|
      FileUtils.mkdir_p(File.dirname(path(name)))
      File.write(path(name), text)
    end
  end

  # Runs a command under the recorder.
  #
  # @return [Hash] what `culet requires --json` says
  def record(*command, options: [], env: {}, chdir: @folder)
    out, @err, status = run_culet("requires", "--json", "--out", path("report.json"), *options, "--", *command,
                                  env: TestHelper::NEUTRAL.merge(env), chdir: chdir)
    @out = out
    document = JSON.parse(File.read(path("report.json")))
    assert_equal document["exit_status"] || (128 + document["signal"]), status.exitstatus, @err
    document
  end

  def ruby(*words) = [RbConfig.ruby, "-I#{@folder}", *words]

  # @return [Hash] of the feature that was found at, or asked for by, this name
  def feature(document, name)
    found = document["features"].select { |one| [one["path"], one["name"]].include?(name) || one["path"] == path(name) }
    assert_equal 1, found.size, "#{name}: #{document["features"].map { |one| one["path"] || one["name"] }}"
    found.first
  end

  # @return [String, nil] the path or name of what required it
  def parent(document, one) = one["parent"] && document["features"][one["parent"]].values_at("path", "name").compact.first
end
