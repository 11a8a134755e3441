# frozen_string_literal: true

# The Railtie is defined when the application's class is, behind all others: its initializer, which follows those of the
# application, would draw them to the front. Active Support may come later than culet, which Puma's plugin and RUBYOPT
# load first. A file is compiled before it runs, so the next one behind active_support/lazy_load_hooks.rb finds on_load;
# a program without Active Support pays for one test per compilation, and code that is loaded already runs as before.
await_application = lambda do
  return false unless defined?(ActiveSupport) && ActiveSupport.respond_to?(:on_load)

  ActiveSupport.on_load(:before_configuration) { require_relative "railtie" }
  true
end
unless await_application.call
  TracePoint.new(:script_compiled) { |compilations| compilations.disable if await_application.call }.enable
end
