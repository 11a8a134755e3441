# frozen_string_literal: true

# Loaded into a program by `culet require` (RUBYOPT): records what each require costs from now on. A program that cannot
# be recorded is told so, and runs on as it would have; the reason is left for the report as well.
if (folder = ENV["CULET_REQUIRES"])
  refused = lambda do |reason|
    warn("culet: #{reason}")
    File.write(File.join(folder, "#{Process.pid}.unrecorded"), reason)
  rescue SystemCallError => e
    warn("culet: and the report will not say so: #{e.message}")
  end
  abi = ENV["CULET_REQUIRES_ABI"]
  if abi && abi != "#{RUBY_ENGINE} #{RUBY_VERSION} #{RUBY_PLATFORM}"
    refused.call("this program's Ruby is another one (#{RUBY_VERSION}) than the one that runs culet; install the gem there and use its own `culet`")
  elsif defined?(Ruby::Box) && Ruby::Box.enabled?
    refused.call("nothing is recorded: this Ruby runs in boxes, each of which has a require of its own; unset RUBY_BOX")
  else
    require_relative "../../errors"
    require_relative "../../native"
    if Culet::Native.load
      Culet::Requires.start(folder, ENV["CULET_REQUIRES_FOLLOW"] != "0")
    else
      refused.call(Culet::Native.missing_reason("culet.so"))
    end
  end
end
