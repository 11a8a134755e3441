# frozen_string_literal: true

require_relative "../../system/foreign_file"
require_relative "finding"

module Culet
  class Doctor
    # Versions of Ruby and glibc, read from the files that the process maps.
    class VersionCheck < Check
      # The oldest versions that culet is tested with.
      RUBY_FLOOR = "3.1"
      GLIBC_FLOOR = "2.31"
      # More than libc has, with its debugging information.
      LIBC_BYTES = 64 << 20
      private_constant :LIBC_BYTES

      # @return [Array<Finding>]
      def findings = [ruby, libc]

      private

      def ruby
        version = target.ruby_version
        return unopened("ruby", "Ruby version") if version.nil? && target.unreadable.any?
        return note("ruby", "not a Ruby process") unless version
        return ok("ruby", "Ruby #{version}") unless older?(version, RUBY_FLOOR)

        bad("ruby", "Ruby #{version}", "Upgrade: culet supports Ruby #{RUBY_FLOOR} and later.")
      end

      def libc
        path = paths.find { |candidate| File.basename(candidate).match?(/\Alibc(\.so\.6|-2\.\d+\.so)\z/) }
        version = path && glibc_version(path)
        return unopened("glibc", "C library") if version.nil? && target.unreadable.any?
        return note("glibc", "the C library is musl") if paths.any? { |file| Allocators::InspectedProcess::MUSL.match?(file) }
        return note("glibc", "glibc is not loaded: another C library, or a static program") unless version
        return ok("glibc", "glibc #{version}") unless older?(version, GLIBC_FLOOR)

        bad("glibc", "glibc #{version}", "Use a newer base image: culet supports glibc #{GLIBC_FLOOR} and later.")
      end

      # libc contains the sentence that it prints when it is run as a program.
      def glibc_version(path)
        elf = target.elf(path) or return
        ForeignFile.open(elf.path, follow: true) { |file| file.read(LIBC_BYTES) }
                   .to_s[/GNU C Library [^\n]*version (\d+\.\d+)/n, 1]
      end

      def paths = @paths ||= target.mappings.select(&:file?).map(&:path).uniq

      def older?(version, floor) = (version.split(".").map(&:to_i) <=> floor.split(".").map(&:to_i)) == -1
    end
  end
end
