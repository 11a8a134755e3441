# frozen_string_literal: true

require "fileutils"
require_relative "outline"

module Culet
  module CLI
    # The man pages (man(7)), generated from --help.
    class Manual
      STATUS = {
        "0" => "success; a verb that runs a command exits with the status of the command",
        "1" => "failure, explained on standard error; for doctor, a finding is bad",
        "2" => "wrong usage",
        "3" => "a limit was exceeded (cow --max-private)",
        "126" => "the command cannot be run",
        "127" => "the command was not found",
        "128+N" => "culet or its command was ended by signal N; 130 after Ctrl-C"
      }.freeze
      private_constant :STATUS

      # @return [Hash{String => String}] file name => page
      def pages
        outlines = Outline.all
        { "culet.1" => overview(outlines) }.merge(outlines.to_h { |one| ["#{file_name(one.name)}.1", page(one)] })
      end

      # @param folder [String] gets the pages, and has no others then
      def write(folder)
        FileUtils.mkdir_p(folder)
        FileUtils.rm_f(Dir[File.join(folder, "*.1")])
        pages.each { |name, text| File.write(File.join(folder, name), text) }
      end

      private

      def file_name(name) = "culet-#{name.delete_prefix("-").gsub(/[ -]+/, "-")}"

      def overview(outlines)
        verbs = outlines.flat_map do |one|
          [".TP", "\\fB#{escape(one.name)}\\fR", escape("#{one.summary}; see #{file_name(one.name)}(1)")]
        end
        [heading("culet"),
         section("NAME"), "culet \\- find out why a Ruby process is large, fix it, prove the gain",
         section("SYNOPSIS"), ".B #{escape("culet VERB [options] [-- COMMAND ...]")}",
         section("DESCRIPTION"), *verbs, *statuses, ""].join("\n")
      end

      def page(outline)
        name = file_name(outline.name)
        [heading(name),
         section("NAME"), "#{escape(name)} \\- #{escape(outline.summary)}",
         section("SYNOPSIS"), ".B #{escape(outline.synopsis)}",
         section("OPTIONS"), *parts(outline),
         section("EXAMPLES"), ".nf", *outline.examples.map { |line| escape(line) }, ".fi", *statuses,
         section("SEE ALSO"), ".BR culet (1)", ""].join("\n")
      end

      def heading(name) = %(.TH #{escape(name.upcase)} 1 "" "culet #{VERSION}" "culet")

      def section(name) = ".SH #{name}"

      def statuses = [section("EXIT STATUS"), *STATUS.flat_map { |status, meaning| [".TP", status, escape(meaning)] }]

      def parts(outline)
        lists = outline.parts.slice_when { |one, other| one.class != other.class || one.is_a?(Outline::Option) }
        lists.flat_map { |list| list.first.is_a?(String) ? text(list) : option(list.first) }
      end

      # Lines that are indented keep their form.
      def text(lines)
        lists = lines.reject(&:empty?).slice_when { |one, other| one.start_with?(" ") != other.start_with?(" ") }
        lists.flat_map do |list|
          escaped = list.map { |line| escape(line) }
          list.first.start_with?(" ") ? [".nf", *escaped, ".fi"] : [".PP", *escaped]
        end
      end

      def option(option)
        flags = option.flags.map { |flag| "\\fB#{escape(flag)}\\fR" }.join(", ")
        argument = " #{escape(option.argument)}" if option.argument
        [".TP", "#{flags}#{argument}", *option.text.map { |line| escape(line.strip) }]
      end

      # A dot or an apostrophe at a line's start would make it a macro.
      def escape(text) = text.gsub("\\", "\\e").gsub("-", "\\-").sub(/\A(?=[.'])/, "\\\\&")
    end
  end
end
