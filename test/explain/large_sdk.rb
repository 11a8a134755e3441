# frozen_string_literal: true

require "fileutils"

# A client library as they are generated from the description of a service: thousands of methods, most of which no program
# calls. Its files are in tmp, since Ruby records which code runs of files alone.
module LargeSdk
  METHODS_OF_A_FILE = 200
  FOLDER = File.expand_path("../../tmp/large_sdk", __dir__)

  # @param methods [Integer] to define
  def self.load(methods)
    FileUtils.mkdir_p(FOLDER)
    (0...methods).each_slice(METHODS_OF_A_FILE) { |numbers| require file(numbers) }
  end

  # @return [String] the file with these methods
  def self.file(numbers)
    path = File.join(FOLDER, "service_#{numbers.first}_#{numbers.last}.rb")
    return path if File.exist?(path)

    draft = "#{path}.#{Process.pid}"
    File.write(draft, service(numbers))
    File.rename(draft, path)
    path
  end
  private_class_method :file

  def self.service(numbers)
    methods = numbers.map do |number|
      <<~RUBY
        def operation_#{number}(params = {}, options = {})
          request = { name: "operation #{number}", path: "/v1/\#{params[:id]}", retries: options.fetch(:retries, 3) }
          request[:headers] = params.select { |key, _| key.to_s.start_with?("x_") }.map { |key, value| [key.to_s.tr("_", "-"), value.to_s] }
          raise ArgumentError, "an id is required" if params.empty? && options[:strict]
          request
        end
      RUBY
    end
    "class LargeSdk::Service#{numbers.first / METHODS_OF_A_FILE}\n#{methods.join}end\n"
  end
  private_class_method :service

  # @return [Hash] what one of the first methods returns
  def self.call(number) = (@service ||= LargeSdk::Service0.new).public_send(:"operation_#{number}", { id: number })
end
