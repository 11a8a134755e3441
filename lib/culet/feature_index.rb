# frozen_string_literal: true

require_relative "native"
return if Culet::Native.another_copy?(__FILE__, "culet/feature_index")

# An index of the files of a load path, see boot/lib/feature_index.rb.
require_relative "../../boot/lib/feature_index"
