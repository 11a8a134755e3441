# frozen_string_literal: true

require "shellwords"
require "yaml"

module StandardBench
  # Programs in Ruby: those of ruby/, which use published gems and Debian's Redmine, and those of a checkout of
  # ruby-bench that the user names. harness/ runs both.
  module RubyPrograms
    FOLDER = File.join(__dir__, "ruby")
    HARNESS = File.join(__dir__, "harness")
    ABOUT = {
      "actionpack" => "Rails' controllers, HTML templates and JSON; four threads",
      "activerecord" => "posts with comments in SQLite, read, updated and grouped",
      "binarytrees" => "trees of small arrays",
      "hexapdf" => "writes a PDF file, reads it and compresses it",
      "json" => "writes and reads 2,000 records",
      "kramdown" => "Markdown to HTML",
      "liquid" => "parses and renders a shop's page",
      "mail" => "writes and reads a message with an attachment",
      "nokogiri" => "parses an HTML page, changes it and writes it",
      "psych" => "writes and reads YAML",
      "redmine" => "pages of Debian's Redmine on five threads, without a server",
      "rubocop" => "checks the sources of a gem",
      "sequel" => "as activerecord, with Sequel"
    }.freeze
    # Of those of ruby-bench.
    ITERATIONS = 10
    PREFIX = "ruby-bench/"
    # A busy machine takes many times as long.
    TIMEOUT_SECONDS = 600

    module_function

    # @param gems [String] the directory to install gems into
    # @return [Array<Program>]
    def own(gems)
      environment = { "BUNDLE_GEMFILE" => File.join(FOLDER, "Gemfile"), "BUNDLE_PATH" => gems,
                      "BUNDLE_FROZEN" => "true" }
      ABOUT.map do |name, about|
        program(name, about, File.join(FOLDER, "#{name}.rb"), name == "redmine" ? {} : environment)
      end
    end

    # @param checkout [String]
    # @param gems [String]
    # @return [Array<Program>] those that ruby-bench does not call microbenchmarks
    # @raise [Culet::Error] where there is no checkout
    def of(checkout, gems)
      list = File.expand_path("benchmarks.yml", checkout)
      raise Culet::Error, "there is no ruby-bench in #{checkout}: it has no benchmarks.yml" unless File.file?(list)

      environment = { "BUNDLE_PATH" => gems, "STANDARD_ITERATIONS" => ITERATIONS.to_s }
      YAML.safe_load_file(list).reject { |_, about| about["category"] == "micro" }.filter_map do |name, about|
        file = script(checkout, name)
        program("#{PREFIX}#{name}", about["desc"].to_s.strip, file, environment) if file
      end
    end

    def script(checkout, name)
      ["#{name}/benchmark.rb", "#{name}.rb"].map { |file| File.expand_path("benchmarks/#{file}", checkout) }
                                            .find { |file| File.file?(file) }
    end

    def program(name, about, file, environment)
      path = [HARNESS, file].map { |text| text.gsub("%", "%%").shellescape }
      Program.new(name: name, about: about, command: "%<ruby>s -I #{path.first} #{path.last}", needs: [], ruby: true,
                  runs: Catalogue::RUNS, timeout: TIMEOUT_SECONDS, environment: environment)
    end
  end
end
