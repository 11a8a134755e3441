# frozen_string_literal: true

require_relative "errors"
require_relative "native"

module Culet
  # How a Ruby program that culet starts is told to load a part of culet first: by words before those that RUBYOPT holds.
  module RubyOptions
    module_function

    # The user's own options follow. What stands there already, from a parent that was started so, is not repeated.
    #
    # @param feature [String] e.g. "culet/auto"
    # @param text [String, nil] what RUBYOPT holds
    # @return [String] what it is to hold
    # @raise [Culet::Error] when the library's path cannot be written there
    def loading(feature, text)
      own = words(feature)
      return text if text.to_s.start_with?(own)

      [own, text].compact.reject(&:empty?).join(" ")
    end

    def words(feature)
      directories = [File.expand_path("..", __dir__), *extension_directory].uniq
      spoiled = directories.find { |directory| directory.match?(/\s/) }
      if spoiled
        raise Error, "#{feature} cannot be loaded from #{spoiled} through RUBYOPT, because Ruby takes spaces there as " \
                     "separators; put it where the path has none"
      end

      [*directories.map { |directory| "-I#{directory}" }, "-r#{feature}"].join(" ")
    end
    private_class_method :words

    # Where the gem's build put the native part apart from the Ruby files, nothing else leads there: in a program
    # with a bundle of its own, the gem is not activated.
    def extension_directory
      path = Native.find("culet.so")
      path && File.expand_path("../..", path)
    end
    private_class_method :extension_directory
  end
end
