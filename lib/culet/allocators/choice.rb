# frozen_string_literal: true

require "open3"
require "rbconfig"
require_relative "../errors"
require_relative "../native"
require_relative "locator"
require_relative "preload"
require_relative "trim"

module Culet
  module Allocators
    # One allocator with its settings, as a candidate or as what `culet run` uses.
    class Choice
      # name: "jemalloc"; settings: {"narenas" => "2"}, the allocator's own in the order given; trim: a Trim
      attr_reader :name, :settings, :trim

      # @param settings [Hash{String => String}] checked by Allocators.parse
      # @param locator [Locator] finds the library
      # @param file [String, nil] path of the library, where the user chose one
      def initialize(definition:, settings:, trim: Trim.new, locator: Locator.new, file: nil)
        @definition = definition
        @name = definition.name
        @settings = settings.dup.freeze
        @trim = trim
        @locator = locator
        @file = file
      end

      # @return [String] the canonical text, e.g. "jemalloc:trim,narenas=2"
      def spec
        words = [*trim.spec, *settings.map { |key, value| "#{key}=#{value}" }]
        words.empty? ? @file || name : "#{@file || name}:#{words.join(",")}"
      end
      alias to_s spec

      # @return [String, nil] absolute path of the library; nil for glibc, which needs none
      # @raise [Culet::Error] when it is not there; the message says what to install
      def library
        return @file if @file

        case name
        when "glibc" then nil
        when "culet" then Allocators.culet_library
        else @library ||= @locator.find(@definition.patterns) || raise(Error, absent)
        end
      end

      # @return [String, nil] the Debian package that brings the library
      def package = @definition.packages.last

      # @param path [String] of a file that a process has mapped
      # @return [Boolean] whether it is this allocator's library
      def library?(path) = @file ? path == @file : @definition.library?(path)

      # @return [Boolean] whether the library is there
      def available?
        library
        true
      rescue Error
        false
      end

      # The variables to merge into a child's environment so that it runs on this allocator, and trims or not.
      #
      # @param base [#[]] the environment the child would have
      # @param isolated [Boolean] also unset what `base` says to this or another allocator of the catalogue, so
      #   that candidates differ by their settings alone
      # @return [Hash{String => String, nil}] nil means: unset
      # @raise [Culet::Error] when the library is not there
      def environment(base = ENV, isolated: false)
        merged = isolated ? Allocators.tuning_variables(base).to_h { |key| [key, nil] } : {}
        merged["LD_PRELOAD"] = Preload.new(base["LD_PRELOAD"]).with(library)
        # The mark of a program that a Ruby under culet started; what we start is started anew.
        merged["CULET_INHERITED"] = nil if base["CULET_INHERITED"]
        apply_settings(merged, isolated ? {} : base)
        if isolated && base["GLIBC_TUNABLES"] && !merged["GLIBC_TUNABLES"]
          merged["GLIBC_TUNABLES"] = without_malloc_tunables(base["GLIBC_TUNABLES"])
        end
        merged.merge(trim.environment(base, isolated: isolated))
      end

      # @return [String, nil] the library's own version where a process that runs on it can tell (asked once, in a
      #   short-lived child), else the number in its file name, or its package's where that is the interface's, else the
      #   build ID
      def version
        return @version if defined?(@version)

        @version = asked_version || (@definition.interface_number ? package_version : file_version) || build
      end

      private

      def absent
        names = @definition.packages.reverse.join(" (or ")
        names += ")" * (@definition.packages.size - 1)
        "#{name} is not installed: install the Debian package #{names}, " \
          "e.g. `apt-get install #{package}`, or put its library's folder into LD_LIBRARY_PATH"
      end

      def apply_settings(merged, base)
        case name
        when "glibc" then apply_glibc(merged, base)
        when "jemalloc" then apply_jemalloc(merged, base)
        when "mimalloc" then settings.each { |key, value| merged["MIMALLOC_#{key.upcase}"] = value }
        else settings.each { |key, value| merged[@definition.settings.fetch(key).variable] = value }
        end
      end

      # glibc lets a tunable and its older variable both set one value; a setting given here must win over both.
      def apply_glibc(merged, base)
        return if settings.empty?

        known = settings.to_h { |key, value| [@definition.settings.fetch(key), value] }
        overruled = known.keys.map(&:tunable)
        tunables = base["GLIBC_TUNABLES"].to_s.b.split(":").reject { |pair| overruled.include?(pair[/\A[^=]*/]) }
        known.each do |setting, value|
          setting.variable ? merged[setting.variable] = value : tunables << "#{setting.tunable}=#{value}"
        end
        text = tunables.empty? ? nil : tunables.join(":")
        merged["GLIBC_TUNABLES"] = text if text != base["GLIBC_TUNABLES"]
      end

      # jemalloc reads MALLOC_CONF from left to right, the last word on a key wins.
      def apply_jemalloc(merged, base)
        return if settings.empty?

        own = settings.map { |key, value| "#{key}:#{value}" }
        kept = base["MALLOC_CONF"].to_s
        merged["MALLOC_CONF"] = [*(kept unless kept.empty?), *own].join(",")
      end

      def without_malloc_tunables(text)
        kept = text.b.split(":").reject { |pair| pair.start_with?("glibc.malloc.") }
        kept.empty? ? nil : kept.join(":")
      end

      # Loading a foreign malloc into this process to ask it would change what this process measures.
      def asked_version
        return if Native.find("culet.so").nil? && name != "glibc"
        return glibc_version if name == "glibc"

        lib = File.expand_path("../..", __dir__)
        script = "a = Culet.allocator; print a[:version] if a && a[:name] == ARGV[0]"
        text, status = Open3.capture2(environment, RbConfig.ruby, "--disable-gems", *native_path, "-I", lib, "-rculet",
                                      "-e", script, name, err: File::NULL)
        text if status.success? && !text.empty?
      rescue Error
        nil
      end

      def native_path
        path = Native.find("culet.so")
        ["-I", File.expand_path("../..", path)]
      end

      def glibc_version = `getconf GNU_LIBC_VERSION 2>/dev/null`[/[\d.]+/]

      # The release as dpkg knows it: "2.0.1-1" and "1:2.0.1+ds-1" are 2.0.1. Nothing where no package brought it.
      def package_version
        owner, status = Open3.capture2("dpkg-query", "--search", File.realpath(library), err: File::NULL)
        return unless status.success?

        text, = Open3.capture2("dpkg-query", "--show", "--showformat=${Version}", owner[/\A[^:,\s]+/], err: File::NULL)
        text[/\A(?:\d+:)?(\d+(?:\.\d+)+)/, 1]
      rescue SystemCallError, Error
        nil # not a Debian system, or the library is not there
      end

      def build
        id = Elf.new(library).build_id if available? && library
        id && "build #{id[0, 12]}"
      rescue Elf::Invalid, SystemCallError
        nil
      end

      def file_version
        File.basename(File.realpath(library))[/\.so\.(\d+\.[\d.]+)\z/, 1] if available? && library
      end
    end
  end
end
