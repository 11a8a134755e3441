# frozen_string_literal: true

require "trace/trace_helper"
require_relative "parts_helper"

# Programs linked with musl on the preloaded libraries.
class MuslPreloadTest < Minitest::Test
  include TraceHelper
  include MuslPartsHelper

  # musl's calloc calls malloc by name, its aligned functions each other: one request is one event.
  EVERY_FUNCTION = <<~C
    char *a = malloc(1001), *b = calloc(7, 143), *c; void *e;
    a = realloc(a, 5003);
    if (posix_memalign(&e, 256, 1013)) abort();
    free(e);
    c = aligned_alloc(64, 1088);
    free(memalign(32, 1019));
    free(valloc(1021));
    free(c);
    free(b);
    free(a);
  C

  def setup
    super
    assert_musl_gcc
  end

  def test_the_recorder_records_every_request_once
    preload("replay", "replay", "culet-trace.so", EVERY_FUNCTION, "CULET_TRACE_FILE" => path)
    expected = [%w[malloc 1001], %w[calloc 1001], %w[realloc 5003], %w[aligned 1013 256], %w[aligned 1088 64],
                %w[aligned 1019 32], %w[aligned 1021 4096]]
    assert_equal expected, asked(1001, 5003, 1013, 1088, 1019, 1021)
  end

  # A child that is not Ruby keeps musl's malloc, and frees what culet's functions pass on.
  def test_a_child_that_is_not_ruby_is_dormant
    body = <<~C
      int (*active)(void) = dlsym(RTLD_DEFAULT, "culet_active");
      char *a = calloc(10, 100); void *b;
      a = realloc(a, 200000);
      if (posix_memalign(&b, 4096, 100) || malloc_usable_size(b) < 100) abort();
      free(b); free(a); free(memalign(64, 10));
      printf("%d", active());
    C
    assert_equal "1", preload("allocator", "libculet", "libculet.so", "#include <dlfcn.h>\n#{main(body)}")
    assert_equal "0", preload("allocator", "libculet", "libculet.so", "#include <dlfcn.h>\n#{main(body)}", "CULET_INHERITED" => "1")
  end

  private

  def main(body) = "int main(void) { #{body} return 0; }"

  def preload(part, target, library, source, env = {})
    make_for_musl(part, target)
    program = compile(source, language: "musl-gcc")
    out, = assert_success(program, env: NEUTRAL.merge(env, "LD_PRELOAD" => File.join(ROOT, part, "build/musl", library)))
    out
  end
end
