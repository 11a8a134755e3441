# frozen_string_literal: true

require "fileutils"
require "mkmf"

append_cflags(["-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wshadow"])
# Warnings are errors in our own builds, not under a user's newer compiler.
append_cflags("-Werror") if ENV["CULET_STRICT"]
$CFLAGS << " -g0" unless enable_config("debugging", true)

# In libdl up to glibc 2.33, in libc since.
have_library("dl", "dladdr") unless have_func("dladdr", "dlfcn.h", "-D_GNU_SOURCE")
have_library("pthread", "pthread_create") unless have_func("pthread_create", "pthread.h")
have_func("rb_ext_ractor_safe", "ruby.h")
have_func("RTYPEDDATA_GET_DATA", "ruby.h") # Ruby 3.3 and later
have_const("RUBY_ELTS_SHARED", "ruby.h")
have_const("RSTRING_FSTR", "ruby.h")
# Up to Ruby 3.4, which flag says that an object has instance variables; later it is 0.
FLAG = "#include <ruby.h>\nint check[RUBY_FL_EXIVAR != 0 ? 1 : -1];"
$defs << "-DHAVE_VARIABLES_FLAG" if try_compile(FLAG)
have_func("rb_class_attached_object", "ruby.h") # from 3.2
have_func("rb_thread_atfork", "ruby.h") # for the agent's forked copy
have_func("rb_postponed_job_preregister", "ruby/debug.h") # Ruby 3.3 and later
if try_link("extern __thread void *ruby_current_ec;\nint main(void) { return ruby_current_ec != 0; }")
  $defs << "-DHAVE_RUBY_CURRENT_EC" # for the profile's frames of eval
end
%w[rb_f_require rb_provided rb_loaderror_with_path].each { |name| have_func(name, "ruby.h") } # for culet/require
have_header("malloc.h")
have_struct_member("struct mallinfo", "uordblks", "malloc.h")

# As ruby.h, whatever is included first.
$CPPFLAGS << " -D_GNU_SOURCE"

# The headers that the extension shares with the parts in C.
$INCFLAGS << " -I$(srcdir)/../.."

# One folder for each tool; the object files are in folders of the same names. sampler/core is shared with the allocator.
root = File.expand_path("../..", __dir__)
sources = (Dir["**/*.c", base: __dir__] + Dir["sampler/core/*.c", base: root]).sort
$VPATH << "$(srcdir)/../.."
sources.each { |source| FileUtils.mkdir_p(File.dirname(source)) }
$objs = sources.map { |source| source.sub(/c\z/, "o") }

# A platform gem serves Rubies with and without a libruby.so of their own: its symbols are found in what is loaded.
$LIBRUBYARG = "" if enable_config("platform-gem", false)

create_makefile("culet/culet")
