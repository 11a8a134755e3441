# frozen_string_literal: true

require_relative "../errors"
require_relative "../native"

module Culet
  # Makes Ruby programs load a part of culet through RUBYOPT, before the user's own options.
  #
  # @api private
  module RubyOptions
    module_function

    # Options that a parent process has added already are not repeated.
    #
    # @param feature [String] e.g. "culet/auto"
    # @param text [String, nil] the present RUBYOPT
    # @return [String] the new RUBYOPT
    # @raise [Culet::Error] when the path contains spaces
    def loading(feature, text)
      own = words(feature)
      return text if text.to_s.start_with?(own)

      [own, text].compact.reject(&:empty?).join(" ")
    end

    # The parts that a user can load into a program.
    PARTS = %w[agent auto blackbox limit profile require unused].freeze

    # @param part [String] one of PARTS
    # @return [String] the assignment as users write it; by path, because Bundler restricts gems, not paths
    def advice(part) = "RUBYOPT=-r$(culet lib #{part})"

    # @param part [String] one of PARTS
    # @return [String] the absolute path of its file
    # @raise [Culet::Error] when the path contains spaces
    def file(part) = loadable(File.expand_path("../#{part}.rb", __dir__), "culet/#{part}")

    # @param path [String] as of `file` or `loadable`
    # @return [String] the present RUBYOPT with the file
    def requiring(path) = ["-r#{path}", *ENV.fetch("RUBYOPT", nil)].reject(&:empty?).join(" ")

    # @param path [String] the absolute path of a file to load by -r
    # @param name [String] its name in messages
    # @return [String] the path
    # @raise [Culet::Error] when the path contains spaces
    def loadable(path, name)
      refuse_spaces(path, name)
      path
    end

    def words(feature)
      directories = [File.expand_path("../..", __dir__), *extension_directory].uniq
      directories.each { |directory| refuse_spaces(directory, feature) }
      [*directories.map { |directory| "-I#{directory}" }, "-r#{feature}"].join(" ")
    end

    def refuse_spaces(path, feature)
      return unless path.match?(/\s/)

      raise Error, "#{feature} cannot be loaded from #{path} through RUBYOPT, because Ruby takes spaces there as " \
                   "separators; put it where the path has none"
    end

    # A program with its own bundle does not activate the gem, so the folder of the native extension must be given,
    # unless it is in a folder that the library looks into.
    def extension_directory
      path = Native.find("culet.so")
      return if path.nil? || path.start_with?(File.expand_path("..", __dir__))

      File.expand_path("../..", path)
    end

    private_class_method :words, :refuse_spaces, :extension_directory
  end
end
