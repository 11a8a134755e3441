# frozen_string_literal: true

require_relative "../errors"
require_relative "../native"

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

    # The parts that a user loads into a program.
    PARTS = %w[agent auto require unused].freeze

    # @param part [String] one of PARTS
    # @return [String] the word of RUBYOPT that loads it into any program of this Ruby, as users write it: Bundler leaves
    #   a program only the gems of its bundle, but no path in its way
    def advice(part) = "RUBYOPT=-r$(culet lib #{part})"

    # @param part [String] one of PARTS
    # @return [String] the absolute path of its file
    # @raise [Culet::Error] when it cannot be written in RUBYOPT
    def file(part)
      path = File.expand_path("../#{part}.rb", __dir__)
      refuse_spaces(path, "culet/#{part}")
      path
    end

    def words(feature)
      directories = [File.expand_path("../..", __dir__), *extension_directory].uniq
      directories.each { |directory| refuse_spaces(directory, feature) }
      [*directories.map { |directory| "-I#{directory}" }, "-r#{feature}"].join(" ")
    end
    private_class_method :words

    def refuse_spaces(path, feature)
      return unless path.match?(/\s/)

      raise Error, "#{feature} cannot be loaded from #{path} through RUBYOPT, because Ruby takes spaces there as " \
                   "separators; put it where the path has none"
    end
    private_class_method :refuse_spaces

    # Where the gem's build put the native part apart from the Ruby files, nothing else leads there: in a program
    # with a bundle of its own, the gem is not activated.
    def extension_directory
      path = Native.find("culet.so")
      path && File.expand_path("../..", path)
    end
    private_class_method :extension_directory
  end
end
