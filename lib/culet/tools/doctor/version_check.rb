# frozen_string_literal: true

require_relative "finding"

module Culet
  class Doctor
    # Versions of what the process has loaded, read from its own files.
    class VersionCheck < Check
      # The oldest that culet is tested with.
      RUBY_FLOOR = "3.1"
      GLIBC_FLOOR = "2.31"

      # @return [Array<Finding>]
      def findings = [ruby, libc]

      private

      def ruby
        version = ruby_version
        return unopened("ruby", "its version of Ruby") if version.nil? && target.unreadable.any?
        return note("ruby", "not a Ruby process: no mapped file defines ruby_version") unless version
        return ok("ruby", "Ruby #{version}") unless older?(version, RUBY_FLOOR)

        bad("ruby", "Ruby #{version}", "culet is made for Ruby #{RUBY_FLOOR} and later; upgrade Ruby.")
      end

      def unopened(topic, what) = unknown(topic, "#{what} is", "#{target.unreadable.first} cannot be opened from here", "Look from inside its container, or as root.")

      # Ruby exports its version as text, from libruby or from the executable.
      def ruby_version
        candidates = [*paths.grep(%r{/libruby[^/]*\.so}), target.executable]
        candidates.each do |path|
          elf = target.elf(path)
          symbol = elf&.symbol("ruby_version")
          return elf.text_at(symbol) if symbol
        end
        nil
      end

      def libc
        path = paths.find { |candidate| File.basename(candidate).match?(/\Alibc(\.so\.6|-2\.\d+\.so)\z/) }
        version = path && glibc_version(path)
        return unopened("glibc", "its C library") if version.nil? && target.unreadable.any?
        return note("glibc", "no glibc is mapped: another C library, or a static program") unless version
        return ok("glibc", "glibc #{version}") unless older?(version, GLIBC_FLOOR)

        bad("glibc", "glibc #{version}", "culet is made for glibc #{GLIBC_FLOOR} and later; use a newer base image.")
      end

      # The sentence that libc prints when it is run as a program.
      def glibc_version(path)
        target.elf(path) && File.binread(target.elf(path).path)[/GNU C Library [^\n]*version (\d+\.\d+)/n, 1]
      end

      def paths = @paths ||= target.mappings.select(&:file?).map(&:path).uniq

      def older?(version, floor) = (version.split(".").map(&:to_i) <=> floor.split(".").map(&:to_i)) == -1
    end
  end
end
