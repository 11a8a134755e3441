# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/unused")

# Records which compiled code runs, see boot/lib/unused.rb.
require_relative "../../boot/lib/unused"
