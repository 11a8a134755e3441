# frozen_string_literal: true

require_relative "../../ext/extension"

Extension.check
have_func("RTYPEDDATA_GET_DATA", "ruby.h") # Ruby 3.3 and later

# Of the memory side's extension, what knows neither of its tools.
SHARED = %w[common/active_malloc common/buffer common/heap_walk common/imemo common/io common/release common/vm_lock
            reading/ruby_stats].freeze

Extension.create("culet_boot", __dir__, "ext/culet" => SHARED.map { |file| "#{file}.c" })
