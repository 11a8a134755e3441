# frozen_string_literal: true

require_relative "../errors"
require_relative "profile/views"
require_relative "profile/recording"
require_relative "profile/stream"
require_relative "profile/data"
require_relative "profile/document"
require_relative "profile/table"

module Culet
  # A sampling profile of memory: which code allocated what a process holds.
  #
  #   Recording   one process's stream (profile/profile.h), checked
  #   Symbols, AddressSpace   names of native addresses; addresses in the mappings of several processes
  #   Data        recordings merged: the sites of each view, sums by line, gem and so on
  #   Difference  two Data, the later less the earlier
  #   Interval    what was allocated between two recordings of the same processes
  #   Table, Document, Html            a report for the terminal, as JSON, as a page
  #   Pprof, Speedscope, Firefox, Collapsed   files of other tools
  #   Live, Session, Command           running processes, by their agents; a command, from start to end
  #   Continuous                       one pprof file per interval, for Rotation (a folder) and Pyroscope (a server)
  module Profile
    autoload :Interval, File.expand_path("profile/interval", __dir__)
    autoload :Pprof, File.expand_path("profile/pprof", __dir__)
    autoload :Speedscope, File.expand_path("profile/speedscope", __dir__)
    autoload :Firefox, File.expand_path("profile/firefox", __dir__)
    autoload :Collapsed, File.expand_path("profile/collapsed", __dir__)
  end
end
