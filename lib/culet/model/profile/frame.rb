# frozen_string_literal: true

require_relative "../origin"
require_relative "symbols"

module Culet
  module Profile
    # libruby, or a Ruby that contains it, and the collectors that it loads.
    RUBY_LIBRARY = /\A(?:libruby|ruby(?!.*\.so\z))/
    private_constant :RUBY_LIBRARY

    # One function of a stack.
    #
    # file: path of a Ruby file; line: in that file; method: name of the method or native function; gem: "NAME VERSION";
    # library: file name of a native library. nil where it does not apply. remark: whether it stands for frames that are
    # missing. mapping, address: where a native frame is (AddressSpace), for files that have addresses.
    Frame = Struct.new(:file, :line, :method, :gem, :library, :remark, :mapping, :address) do
      def initialize(*)
        super
        # Stacks are keys of hashes: a frame of 100,000 of them is hashed once.
        @hash = to_a.hash
        freeze
      end

      # @return [Integer]
      attr_reader :hash

      # @return [Boolean] whether it is Ruby code with a file
      def ruby? = !file.nil?

      # @return [Boolean] whether it is a frame of the interpreter: Ruby code, or a method in C
      def interpreted? = library.nil? && remark.nil? && method != Symbols::UNKNOWN

      # @return [Boolean] whether it is a native function whose name is not known
      def nameless? = method == Symbols::UNKNOWN || (!library.nil? && method == "[#{library}]")

      # @return [Boolean] whether it is a native function of Ruby itself
      def ruby_library? = RUBY_LIBRARY.match?(library.to_s)

      # @return [Symbol] whose code it is: :application, :gem, :ruby (with its library, and its methods in C), :library
      #   or :unknown
      def kind
        return :unknown if remark || method == Symbols::UNKNOWN
        return ruby_library? ? :ruby : :library if library
        return :ruby if file.nil? || gem == Origin::RUBY

        gem ? :gem : :application
      end

      # @return [String, nil] "file:line"; the file alone where the line is not known
      def place = file && [file, *(line if line&.positive?)].join(":")

      # @return [String] "method" and where it is
      def to_s
        place = self.place || (library unless nameless?)
        place && file != method ? "#{method} (#{place})" : method
      end
    end
  end
end
