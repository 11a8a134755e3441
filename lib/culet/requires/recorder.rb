# frozen_string_literal: true

# Loaded into a program by `culet require` (RUBYOPT): records what each require costs from now on. A program that cannot
# be recorded is told so, and runs on as it would have.
abi = ENV["CULET_REQUIRES_ABI"]
if abi && abi != "#{RUBY_ENGINE} #{RUBY_VERSION} #{RUBY_PLATFORM}"
  warn("culet: this program's Ruby is another one (#{RUBY_VERSION}) than the one that runs culet; install the gem there and use its own `culet`")
elsif ENV["CULET_REQUIRES"] && defined?(Ruby::Box) && Ruby::Box.enabled?
  warn("culet: nothing is recorded: this Ruby runs in boxes, each of which has a require of its own; unset RUBY_BOX")
elsif ENV["CULET_REQUIRES"]
  require_relative "../errors"
  require_relative "../native"
  if Culet::Native.load
    Culet::Requires.start(ENV["CULET_REQUIRES"], ENV["CULET_REQUIRES_FOLLOW"] != "0")
  else
    warn("culet: #{Culet::Native.missing_reason("culet.so")}")
  end
end
