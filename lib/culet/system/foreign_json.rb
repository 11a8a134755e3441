# frozen_string_literal: true

require "json"

module Culet
  # Parses JSON that a file or another process supplied, so that all of it can be written as JSON again: text is valid
  # UTF-8, numbers are finite. The time is bounded by the length of the text.
  #
  # @api private
  module ForeignJson
    # An Integer of n digits takes more than n steps. In a text, such a number is as unlikely as in a document.
    LONG_NUMBER = /(?:\A|[\[:,\s])-?\d{400}/
    # Digits of a number that may be above the largest Float.
    MANY_DIGITS = /\d{300}/
    # Half of a pair of surrogates as an escape, and an exponent, which an address in quotes is not.
    SUSPECT = /\\u[dD][89a-fA-F]|[eE]\+?\d{3,}(?![\h"])/
    private_constant :LONG_NUMBER, :MANY_DIGITS, :SUSPECT

    module_function

    # @param text [String] in any encoding
    # @param max_nesting [Integer] as of JSON.parse
    # @return [Object]
    # @raise [JSON::ParserError] when it is no JSON, or has numbers that are no numbers of a document
    def parse(text, max_nesting: 100)
      text = text.dup.force_encoding(Encoding::UTF_8).scrub("?")
      many = text.match?(MANY_DIGITS)
      raise JSON::ParserError, "a number is too long" if many && text.match?(LONG_NUMBER)

      value = JSON.parse(text, max_nesting: max_nesting)
      many || text.match?(SUSPECT) ? clean(value) : value
    rescue EncodingError => e
      raise JSON::ParserError, e.message
    end

    def clean(value)
      case value
      when Hash then value.to_h { |key, one| [key.scrub("?"), clean(one)] }
      when Array then value.map { |one| clean(one) }
      when String then value.scrub("?")
      when Float then value.finite? ? value : raise(JSON::ParserError, "a number is too large")
      else value
      end
    end
    private_class_method :clean
  end
end
