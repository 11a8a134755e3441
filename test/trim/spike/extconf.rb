# frozen_string_literal: true

require "mkmf"

have_func("rb_postponed_job_preregister", "ruby/debug.h")
create_makefile("spike")
