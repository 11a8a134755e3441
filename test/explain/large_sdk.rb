# frozen_string_literal: true

# A client library as they are generated from the description of a service: thousands of methods, most of which no program
# calls.
module LargeSdk
  METHODS_OF_A_CLASS = 200

  # @param methods [Integer] to define
  def self.load(methods)
    (0...methods).each_slice(METHODS_OF_A_CLASS) do |numbers|
      file = File.join(__dir__, "large_sdk_#{numbers.first}.rb")
      eval(service(numbers), TOPLEVEL_BINDING, file, 1) # rubocop:disable Security/Eval
    end
    nil
  end

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
    "class LargeSdk::Service#{numbers.first / METHODS_OF_A_CLASS}\n#{methods.join}end\n"
  end
  private_class_method :service

  # @return [Hash] what one of the first methods returns
  def self.call(number) = (@service ||= LargeSdk::Service0.new).public_send(:"operation_#{number}", { id: number })
end
