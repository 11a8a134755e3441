# frozen_string_literal: true

require "fileutils"
require "mkmf"
require "tmpdir"

append_cflags(["-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wshadow"])
# The maintainers' builds stop at any warning; a user's newer compiler must not.
append_cflags("-Werror") if ENV["CULET_STRICT"]

# dladdr is in libdl before glibc 2.34, in libc since.
have_library("dl", "dladdr") unless have_func("dladdr", "dlfcn.h", "-D_GNU_SOURCE")
have_library("pthread", "pthread_create") unless have_func("pthread_create", "pthread.h") # in libc from glibc 2.34 on
have_func("rb_ext_ractor_safe", "ruby.h")
have_func("RTYPEDDATA_GET_DATA", "ruby.h") # from Ruby 3.3 on
have_const("RUBY_ELTS_SHARED", "ruby.h")
have_const("RSTRING_FSTR", "ruby.h")
have_func("rb_thread_atfork", "ruby.h") # what a copy of the process calls
have_func("rb_postponed_job_preregister", "ruby/debug.h") # from Ruby 3.3 on
%w[rb_f_require rb_provided rb_loaderror_with_path].each { |name| have_func(name, "ruby.h") } # what culet/require calls
have_header("malloc.h")
have_struct_member("struct mallinfo", "uordblks", "malloc.h")

# Of x.so in an earlier folder of the load path and x.rb in a later one, Ruby takes the one or the other, by its release.
Dir.mktmpdir do |directory|
  { "early" => "x.#{RbConfig::CONFIG["DLEXT"]}", "late" => "x.rb" }.each do |folder, file|
    FileUtils.mkdir(File.join(directory, folder))
    FileUtils.touch(File.join(directory, folder, file))
    $LOAD_PATH.push(File.join(directory, folder))
  end
  $defs << "-DCULET_RUBY_FILES_FIRST" if $LOAD_PATH.resolve_feature_path("x").first == :rb
  $LOAD_PATH.pop(2)
end

# One folder for each tool; the object files are in folders of the same names.
sources = Dir["**/*.c", base: __dir__].sort
sources.each { |source| FileUtils.mkdir_p(File.dirname(source)) }
$objs = sources.map { |source| source.sub(/c\z/, "o") }

create_makefile("culet/culet")
