# frozen_string_literal: true

# Runs test files: the named ones in this process, in one minitest run; all of them, when none is named, each in a
# process of its own and several at a time; with --parts, the linters and the C tests beside them.
#
#   ruby test/run_all.rb DIRECTORY [--parts | FILE ...]    FILEs are relative to DIRECTORY
directory, *files = ARGV
ARGV.clear
if files.empty? || files == ["--parts"]
  require_relative "runner/run"
  require_relative "runner/part"
  exit Runner::Run.new(Dir[File.join(__dir__, "**/*_test.rb")], parts: files.empty? ? [] : Runner::Part.all).call
else
  files.each { |file| require File.expand_path(file, directory) }
end
