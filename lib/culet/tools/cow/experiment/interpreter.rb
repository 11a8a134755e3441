# frozen_string_literal: true

require "open3"
require "shellwords"
require_relative "../../../errors"
require_relative "../../../system/executables"

module Culet
  module Cow
    module Experiment
      # A program that runs the experiment: Ruby, Python, or another one with its own script.
      class Interpreter
        SCRIPTS = { /\A(?:j|truffle)?ruby[\d.]*\z/ => "experiment.rb",
                    /\A(?:python|pypy)[\d.]*\z/ => "experiment.py" }.freeze
        DIRECTORY = File.expand_path("../../../../../workloads/cow", __dir__)
        private_constant :SCRIPTS, :DIRECTORY

        # @param text [String] the program, with arguments: "/opt/ruby-3.4/bin/ruby --yjit"
        # @param script [String, nil] nil: the script that comes with culet
        # @raise [Culet::UsageError] without such a program, or without a script for it
        def initialize(text, script: nil)
          @words = Shellwords.split(text)
          raise UsageError, "--with takes a program, e.g. --with python3" if @words.empty?

          @words[0] = found(@words.first)
          @script = script || shipped(text)
        rescue ArgumentError
          raise UsageError, "#{text.inspect} has an unmatched quote"
        end

        # @return [Array<String>] program, arguments and script
        def command = [*@words, @script]

        # @return [String] name and version: "ruby 3.1.2", "Python 3.11.2"; the file name where --version fails
        def name = @name ||= [version || File.basename(@words.first), *@words.drop(1)].join(" ")

        private

        def shipped(text)
          name = File.basename(@words.first)
          file = SCRIPTS.find { |pattern, _| name.match?(pattern) }&.last
          unless file
            raise UsageError, "there is no script for #{text}: give one with --script; " \
                              "workloads/cow/experiment.rb describes the protocol"
          end

          File.join(DIRECTORY, file)
        end

        def found(word)
          path = Executables.find(word)
          raise UsageError, "there is no program #{word}; give its path, e.g. --with /usr/bin/python3" unless path

          File.expand_path(path)
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
