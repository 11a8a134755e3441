# frozen_string_literal: true

require "mkmf"

have_func("rb_postponed_job_preregister", "ruby/debug.h") # from Ruby 3.3 on
create_makefile("spike")
