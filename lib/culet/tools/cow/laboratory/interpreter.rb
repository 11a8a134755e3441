# frozen_string_literal: true

require "open3"
require "shellwords"
require_relative "../../../errors"

module Culet
  module Cow
    module Laboratory
      # What runs the experiment: a Ruby, a Python, or anything with a script of its own.
      class Interpreter
        SCRIPTS = { /\A(?:j|truffle)?ruby[\d.]*\z/ => "experiment.rb", /\A(?:python|pypy)[\d.]*\z/ => "experiment.py" }.freeze
        DIRECTORY = File.expand_path("../../../../../workloads/cow", __dir__)
        private_constant :SCRIPTS, :DIRECTORY

        # @param text [String] the program, with words of its own if need be: "/opt/ruby-3.4/bin/ruby --yjit"
        # @param script [String, nil] what it runs; nil: what ships for it
        # @raise [Culet::UsageError] when there is no such program, or no script for it
        def initialize(text, script: nil)
          @words = Shellwords.split(text)
          raise UsageError, "--with takes a program, e.g. --with python3" if @words.empty?

          @words[0] = found(@words.first)
          @script = script || shipped(text)
        rescue ArgumentError
          raise UsageError, "#{text.inspect} has a quote without its other half"
        end

        # @return [Array<String>] what to start
        def command = [*@words, @script]

        # @return [String] what it calls itself: "ruby 3.1.2", "Python 3.11.2"; its file's name where it does not tell
        def name = @name ||= [version || File.basename(@words.first), *@words.drop(1)].join(" ")

        private

        def shipped(text)
          name = File.basename(@words.first)
          file = SCRIPTS.find { |pattern, _| name.match?(pattern) }&.last
          raise UsageError, "there is no script for #{text}: name one with --script; workloads/cow/experiment.rb says what it has to do" unless file

          File.join(DIRECTORY, file)
        end

        def found(word)
          return File.expand_path(word) if word.include?("/") && File.executable?(word)

          path = ENV["PATH"].to_s.split(":").map { |directory| File.join(directory, word) }.find { |file| File.file?(file) && File.executable?(file) }
          path || raise(UsageError, "there is no program #{word}; give its path, e.g. --with /usr/bin/python3")
        end

        def version
          text, status = Open3.capture2e(@words.first, "--version", stdin_data: "")
          text[/\A[A-Za-z]+ [\d.]+/] if status.success?
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
