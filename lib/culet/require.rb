# frozen_string_literal: true

require_relative "native"
return if Culet::Native.another_copy?(__FILE__, "culet/require")

# Makes `require` look files up in an index of the load path, see boot/lib/require.rb.
require_relative "../../boot/lib/require"
require_relative "rails_hook"
require_relative "blackbox" if ENV["CULET_BLACKBOX"]
