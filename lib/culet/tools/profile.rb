# frozen_string_literal: true

require_relative "../model/profile"
require_relative "profile/table"

module Culet
  # A sampling profile of memory: which code allocated what a process holds. Its facts are in model/profile.
  #
  #   Table, Html                      a report for the terminal, as a page
  #   Interval                         what was allocated between two recordings of the same processes
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
