# frozen_string_literal: true

require_relative "../../culet"
require_relative "strings/spool"
require_relative "strings/dump"
require_relative "strings/live"
require_relative "strings/command"
require_relative "strings/findings"
require_relative "strings/document"
require_relative "strings/table"

module Culet
  # Which strings of a Ruby process share what, and what more sharing would free.
  #
  #   Dump, Live, Command   where strings come from: a file, a running process, a command until its end
  #   Slices                how a process tells its own; at_exit.rb is loaded into a command's processes
  #   Spool                 the file of records between reading and analysis (ext/culet/strings/record.h)
  #   Findings              the analysis: totals, groups, gems and files; Group: strings of one content, or ends of one
  #   Verdicts              what that means, in words
  #   Document, Table       the same as JSON, and for a terminal
  #   Graph, Html           the picture, and the page around it
  module Strings
    # Reads strings and analyses them.
    #
    # @param source [Dump, Live, Command]
    # @param top [Integer] how many groups are told
    # @param content [Boolean] whether texts may be shown
    # @return [Findings]
    # @raise [Culet::Error] when they cannot be read
    def self.findings(source, top:, content: true)
      raise Error, Native.missing_reason("culet.so") unless Culet.native?

      Spool.open do |spool|
        source.read(spool)
        Findings.new(analyse(spool.path, top, content), site_names(spool.path).transform_values(&:scrub), source: source)
      end
    end
  end
end
