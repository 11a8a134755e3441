# frozen_string_literal: true

# Loaded into a program by `culet requires` (RUBYOPT): records the cost of each require. If that is impossible, the
# program runs as usual after a warning, and the reason goes to the report.
if (folder = ENV.fetch("CULET_REQUIRES", nil))
  refused = lambda do |reason|
    warn("culet: #{reason}")
    File.write(File.join(folder, "#{Process.pid}.unrecorded"), reason)
  rescue SystemCallError => e
    warn("culet: this is missing from the report: #{e.message}")
  end
  abi = ENV.fetch("CULET_REQUIRES_ABI", nil)
  if abi && abi != "#{RUBY_ENGINE} #{RUBY_VERSION} #{RUBY_PLATFORM}"
    refused.call("this program runs on another Ruby (#{RUBY_VERSION}) than culet; " \
                 "install the gem there and use its `culet`")
  elsif defined?(Ruby::Box) && Ruby::Box.enabled?
    refused.call("nothing is recorded: this Ruby runs in boxes, each with its own require; unset RUBY_BOX")
  else
    require_relative "extension"
    if Culet::Boot.native?
      Culet::Boot::Recorder.start(folder, ENV["CULET_REQUIRES_FOLLOW"] != "0")
    else
      refused.call(Culet::Boot.missing_reason)
    end
  end
end
