# frozen_string_literal: true

require "rbconfig"

# An extension in C that loses memory, as the tests of leaks need one.
module LeakingExtension
  SOURCE = <<~C
    #include <ruby.h>
    #include <stdlib.h>
    static VALUE parse(VALUE self, VALUE bytes) { char *text = malloc(NUM2SIZET(bytes)); text[0] = 1; return SIZET2NUM((size_t)text); }
    void Init_leaking(void) { rb_define_singleton_method(rb_define_module("Leaking"), "parse", parse, 1); }
  C
  NAME = "leaking.#{RbConfig::CONFIG["DLEXT"]}".freeze

  # @param folder [String] where it is compiled
  # @return [String] what to require; its Leaking.parse loses so many bytes of malloc
  def self.build(folder)
    library = File.join(folder, NAME)
    headers = %w[rubyhdrdir rubyarchhdrdir].map { |key| "-I#{RbConfig::CONFIG[key]}" }
    compiler = [RbConfig::CONFIG["CC"].split.first, "-shared", "-fPIC", "-O1", "-fno-builtin", *headers]
    IO.popen([*compiler, "-x", "c", "-o", library, "-", { err: %i[child out] }], "r+") do |process|
      process.write(SOURCE)
      process.close_write
      output = process.read
      raise output unless output.empty?
    end
    library
  end
end
