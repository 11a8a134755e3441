# frozen_string_literal: true

# says: the traffic rises for a minute, and the open requests with it
# shape: Rack in Puma, threaded
# rises: yes, as the traffic does
require_relative "../../load"
Load.client(%w[/page], every: 0.05)
require "bundler/setup"

# Requests that are open: ever more of them, until the traffic stays.
OPEN = []
START = Process.clock_gettime(Process::CLOCK_MONOTONIC)
APPLICATION = lambda do |_environment|
  OPEN << Load.texts(1)
  most = [(Process.clock_gettime(Process::CLOCK_MONOTONIC) - START) / 3, 15].min
  OPEN.shift while OPEN.size > most
  [200, { "content-type" => "text/plain" }, [Load.work(1)]]
end
Load.puma(APPLICATION)
