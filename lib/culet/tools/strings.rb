# frozen_string_literal: true

require_relative "../../culet"
require_relative "strings/record_file"
require_relative "strings/dump"
require_relative "strings/live"
require_relative "strings/findings"
require_relative "strings/document"
require_relative "strings/table"

module Culet
  # Duplicate strings of a Ruby process, and the memory that sharing would save.
  #
  #   Dump, Live            sources of strings: a file, a running process
  #   RecordFile            the temporary file of records between reading and analysis (ext/culet/strings/record.h)
  #   Findings              the analysis: totals, groups, gems and files; Group: equal strings, or suffixes of one
  #                         string
  #   Verdicts              conclusions in sentences
  #   Document, Table       the findings as JSON and for a terminal
  #   Html                  the findings as a page
  module Strings
    # Reads strings and analyses them.
    #
    # @param source [Dump, Live]
    # @param top [Integer] number of groups
    # @param content [Boolean] whether to show texts
    # @raise [Culet::Error] when the source cannot be read
    def self.findings(source, top:, content: true)
      raise Error, Native.missing_reason("culet.so") unless Culet.native?

      RecordFile.open do |records|
        source.read(records)
        result = analyse(records.path, top, content)
        Findings.new(result, site_names(records.path).transform_values(&:scrub), source: source)
      end
    end
  end
end
