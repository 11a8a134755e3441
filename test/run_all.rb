# frozen_string_literal: true

# Runs test files in one minitest run.
#
#   ruby test/run_all.rb DIRECTORY [FILE ...]    FILEs are relative to DIRECTORY; all tests when none is named
directory, *files = ARGV
ARGV.clear
files = files.map { |file| File.expand_path(file, directory) }
files = Dir[File.join(__dir__, "**/*_test.rb")].sort if files.empty?
files.each { |file| require file }
