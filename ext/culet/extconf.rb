# frozen_string_literal: true

require_relative "../extension"

Extension.check
have_const("RSTRING_FSTR", "ruby.h")
# Up to Ruby 3.4, which flag says that an object has instance variables; later it is 0.
FLAG = "#include <ruby.h>\nint check[RUBY_FL_EXIVAR != 0 ? 1 : -1];"
$defs << "-DHAVE_VARIABLES_FLAG" if try_compile(FLAG)
have_func("rb_class_attached_object", "ruby.h") # from 3.2
have_func("rb_postponed_job_preregister", "ruby/debug.h") # Ruby 3.3 and later
have_struct_member("struct mallinfo", "uordblks", "malloc.h")

Extension.create("culet", __dir__, "." => ["sampler/core/*.c"])
