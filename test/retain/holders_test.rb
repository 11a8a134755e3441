# frozen_string_literal: true

require_relative "reading_helper"
require "culet/allocators"
require "fileutils"
require "open3"
require "rbconfig"

# Programs that keep megabytes in one place each: their holder is in the first or second row.
class RetainHoldersTest < Minitest::Test
  include RetentionReadingHelper

  BIG = "def big = Array.new(30_000) { |number| \"kept string \#{number}\" * 3 }"
  # Before 3.3 names are given by C functions alone.
  TEMPORARY = "if LIST[0].respond_to?(:set_temporary_name) then LIST[0].set_temporary_name('Page (cached)')\n" \
              "else require 'fiddle'; Fiddle::Function.new(Fiddle::Handle::DEFAULT['rb_set_class_path'], [Fiddle::TYPE_VOIDP] * 3, Fiddle::TYPE_VOID)" \
              ".call(Fiddle.dlwrap(LIST[0]), Fiddle.dlwrap(Object), 'Page (cached)') end"
  # What is kept => code, and what a row has: the kind and the name, and part of the path.
  PLANTED = {
    constant: ["module Shop; CACHE = big; end", /constant Shop::CACHE/, /Shop::CACHE Array > \[\d+\] String/],
    private_constant: ["module Shop; CACHE = big; private_constant :CACHE; end", /constant Shop::CACHE/],
    class_variable: ["class Shop; @@cache = big; end", /class_variable Shop @@cache/],
    instance_variable: ["class Shop; @cache = big; end", /instance_variable Shop @cache/],
    module_variable: ["module Shop; @cache = { list: big }; end", /instance_variable Shop @cache/, /Hash > \[:list\] Array/],
    global: ["$cache = big", /global \$cache/],
    fiber_local: ["Thread.current[:cache] = big", /fiber_local main thread\[:cache\]/],
    thread_local: ["Thread.current.thread_variable_set(:cache, big)", /thread_local main thread variable :cache/],
    another_threads_local: ["Thread.new { Thread.current[:cache] = big; sleep }; sleep 0.1 until Thread.list.all? { |one| one == Thread.main || one.status == \"sleep\" }",
                            /fiber_local thread\[:cache\]/],
    stack_of_a_thread: ["Thread.new { list = big; sleep; list }; sleep 0.1 until Thread.list.last.status == \"sleep\"", /stack stack of the thread/],
    define_method: ["class Shop; end; def keep(list) = Shop.define_method(:list) { list.size }; keep(big)", /closure Shop#list/, /block \(internal env\) > captured Array/],
    singleton_define_method: ["class Shop; end; def keep(list) = Shop.define_singleton_method(:list) { list.size }; keep(big)", /closure Shop\.list/],
    lambda: ["HANDLERS = []; def keep(list) = HANDLERS << -> { list.size }; keep(big)", /constant HANDLERS/, /Array > \[0\] Proc/],
    symbols: ["30_000.times { |number| Kernel.define_method(\"kept_symbol_\#{number}\", Object.instance_method(:to_s)) rescue nil; }",
              /symbol_table symbols|method Kernel/],
    finalizer: ["KEPT = Object.new; def keep(list) = ObjectSpace.define_finalizer(KEPT, proc { list.size }); keep(big)", /finalizer define_finalizer/],
    at_exit: ["def keep(text) = at_exit { text.size }; big.each { |text| keep(text) }", /closure at_exit/],
    variables_from_data: ["module Shop; end; big.each_slice(99).with_index { |list, number| Shop.instance_variable_set(\"@cache_\#{number}\", list) }",
                          /instance_variable Shop @\*/, /Shop @\* Array > \[\d+\] String/],
    constants_from_data: ["module Shop; end; big.each_slice(99).with_index { |list, number| Shop.const_set(\"CACHE_\#{number}\", list) }", /constant Shop::\*/],
    main_program: ["list = big", /constant TOPLEVEL_BINDING/],
    enumerator: ["LIST = []; def keep(list) = LIST << Enumerator.new { |to| list.each { |one| to << one } }.tap(&:next); keep(big)", /constant LIST/, /Enumerator/],
    fiber: ["LIST = []; def keep = LIST << Fiber.new { list = big; Fiber.yield; list.size }.tap(&:resume); keep", /constant LIST/, /Fiber/],
    two_ways: ["class Shop; def initialize = (list = big) && (@one, @other = [list], [list]); end; SHOP = Shop.new", /constant SHOP/,
               /\ASHOP Shop > \(several references\) Array > \[\d+\] String/],
    struct: ["Row = Struct.new(:cells); LIST = [Row.new(big)]", /constant LIST/, /Row > cells Array/],
    object: ["class Page; def initialize(list) = @list = list; end; LIST = [Page.new(big)]", /constant LIST/, /Page > @list Array/],
    generic_variable: ["LIST = [+\"text\"]; LIST.first.instance_variable_set(:@list, big)", /constant LIST/, /String > (?:@list Array|\S+ \(internal fields\) > \S+ Array)/],
    hash_keys: ["INDEX = big.to_h { |one| [one.to_s, 1] }", /constant INDEX/, /key String/],
    singleton_class: ["LIST = [Object.new]; def keep(list) = LIST.first.define_singleton_method(:list) { list.size }; keep(big)", /constant LIST/],
    class_without_name: ["LIST = [Class.new]; LIST.first.const_set(:CACHE, big)", /constant LIST/, /Class > internal Array/],
    class_with_a_temporary_name: ["LIST = [Class.new]; #{TEMPORARY}; LIST.first.const_set(:CACHE, big)", /constant LIST/, /Class > internal Array/],
    subclass: ["class Shop; end; class Sub < Shop; @cache = big; end", /instance_variable Sub @cache/],
    set: ["require \"set\"; SET = Set.new(big)", /constant SET/],
    native: ["require \"stringio\"; IO_LIST = [StringIO.new(big.join)]", /constant IO_LIST/, /StringIO > \S+ String/],
    ractor: ["READY, DONE = IO.pipe; Ractor.new(DONE.fileno) { |done| list = Array.new(30_000) { |number| \"kept string \#{number}\" * 3 }; " \
             "IO.for_fd(done, autoclose: false).syswrite(\"1\"); Ractor.receive; list.size }; READY.getc", /stack stack of the thread/]
  }.freeze
  WEAK = "class Page; def initialize(text) = @text = text; end; MAP = ObjectSpace::WeakMap.new; KEYS = []; " \
         "30_000.times { |number| MAP[Page.new(number.to_s * 20)] = KEYS }"

  # An extension that keeps objects in memory of its own: below a constant, in a C variable, and by an object that only C has.
  EXTENSION = <<~C
    #include <ruby.h>

    struct shelf { VALUE list; };
    static VALUE registered, hidden;

    static void mark(void *data) { rb_gc_mark(((struct shelf *)data)->list); }

    static const rb_data_type_t type = {.wrap_struct_name = "shop/shelf", .function = {.dmark = mark, .dfree = RUBY_DEFAULT_FREE}};

    static VALUE make(VALUE class, VALUE list)
    {
        struct shelf *shelf;
        VALUE object = TypedData_Make_Struct(class, struct shelf, &type, shelf);

        shelf->list = list;
        return object;
    }

    static VALUE register_list(VALUE class, VALUE list) { return registered = list; }

    static VALUE hide(VALUE class, VALUE list)
    {
        hidden = make(class, list);
        rb_gc_register_mark_object(hidden);
        return Qnil;
    }

    static VALUE allocate_bytes(VALUE class, VALUE bytes)
    {
        static void *volatile last;

        last = malloc(NUM2SIZET(bytes));
        return Qnil;
    }

    static VALUE refuse(ID name, VALUE *unused) { rb_raise(rb_eRuntimeError, "this variable cannot be read"); }

    void Init_shelf(void)
    {
        VALUE class = rb_define_class("Shelf", rb_cObject);

        for (char name[] = "$unreadable_a"; name[12] <= 'z'; name[12]++)
            rb_define_virtual_variable(name, refuse, NULL);

        rb_undef_alloc_func(class);
        rb_gc_register_address(&registered);
        rb_define_singleton_method(class, "make", make, 1);
        rb_define_singleton_method(class, "register", register_list, 1);
        rb_define_singleton_method(class, "hide", hide, 1);
        rb_define_singleton_method(class, "allocate_bytes", allocate_bytes, 1);
    }
  C
  NATIVE = {
    mark_function: ["LIST = [Shelf.make(big)]", /constant LIST/, /Shelf > \(mark\) Array/],
    c_variable: ["Shelf.register(big)", /native|vm/, /Array > \[\d+\] String/],
    object_of_an_extension: ["Shelf.hide(big)", /native|vm/, /Shelf > \(mark\) Array/]
  }.freeze

  # Those that run each time.
  FIRST = %i[constant private_constant fiber_local define_method enumerator generic_variable two_ways].freeze

  PLANTED.each do |name, (code, holder, way)|
    define_method("test_#{name}") do
      skip_unless_all unless FIRST.include?(name)
      assert_kept(code, holder, way)
    end
  end

  NATIVE.each do |name, (code, holder, way)|
    define_method("test_#{name}") do
      skip_unless_all
      assert_kept("require #{File.join(self.class.extension, "shelf").dump}\n#{code}", holder, way)
    end
  end

  # @return [String] the folder of the extension, compiled once
  def self.extension
    @extension ||= TestHelper.lasting_folder.tap do |folder|
      File.write(File.join(folder, "shelf.c"), EXTENSION)
      script = "require 'mkmf'; create_makefile('shelf')"
      ["#{RbConfig.ruby.dump} -e #{script.dump}", "make"].each do |command|
        out, status = Open3.capture2e({ "RUBYOPT" => nil, "RUBYLIB" => nil }, command, chdir: folder)
        raise "#{command} failed:\n#{out}" unless status.success?
      end
    end
  end

  def test_weak_references_keep_nothing
    with_objects("#{WEAK}\n#{UP}") do |pid|
      refute(read(pid)["classes"].any? { |name, objects, _| name == "Page" && objects > 100 })
    end
  end

  # An object that code, a stack and a constant refer to belongs to the constant.
  def test_a_constant_comes_before_code_and_stacks
    code = "#{BIG}\nLIST = big\ndef read = LIST.size\n3.times { read }\nlocal = LIST\n#{UP}\nlocal"
    with_objects(code) { |pid| assert_match(/\Aconstant LIST\z/, rows(read(pid)).first[1].join(",")) }
  end

  def test_keys_of_strings_are_shown_on_request_only
    code = "#{BIG}\nINDEX = { \"secret\" => big }\n#{UP}"
    with_objects(code) do |pid|
      plain = read(pid)
      refute_includes JSON.generate(plain), "secret"
      assert_equal "[String]", plain["holders"].first["path"][1]["edge"]
      assert_equal "[\"secret\"]", read(pid, content: true)["holders"].first["path"][1]["edge"]
    end
  end

  # Ruby opens the first file of ARGV for the value of $FILENAME: here one that would wait for a writer.
  def test_no_file_is_opened_for_the_name_of_a_global_variable
    Dir.mktmpdir do |folder|
      File.mkfifo("#{folder}/fifo")
      assert_kept("ARGV.replace([\"#{folder}/fifo\"]); $list = big", /global \$list/, nil)
    end
  end

  def test_a_global_variable_is_named_beside_some_that_raise_when_they_are_read
    assert_kept("require #{File.join(self.class.extension, "shelf").dump}; $list = big", /global \$list/, nil)
  end

  # The counts of the agent are made in another way (agent/objects.c).
  def test_the_sum_is_that_of_the_objects
    with_objects("#{BIG}\nLIST = big\n#{UP}") do |pid|
      document = read(pid)
      require "culet/model/agent/inquiry"
      counted = Culet::Agent::Inquiry.new(pid).call.fact("objects")
      expected = counted["slot_bytes"] + counted["malloc_bytes"]
      assert_in_delta expected, document["total_bytes"] + document["unreachable_bytes"], 0.02 * expected
    end
  end

  # What objects have does not count, whether something keeps them or not.
  def test_native_memory_is_what_no_object_has
    shelf = "require #{File.join(self.class.extension, "shelf").dump}"
    base = native_bytes(shelf)
    assert_in_delta 0, native_bytes("#{shelf}\nGC.disable\nLIST = Array.new(2_000) { 'k' * 10_000 }\n2_000.times { 'd' * 10_000 }") - base, 1_000_000
    assert_in_delta 20_000_000, native_bytes("#{shelf}\n2_000.times { Shelf.allocate_bytes(10_000) }") - base, 1_000_000
  end

  # Blocks are larger than requests: here by 25 % at most on jemalloc, and by 23 of 25 bytes on glibc. Ruby 4.1 has 3 kB of
  # its own for each page of slots.
  (TestHelper.allocators & %w[glibc jemalloc tcmalloc culet]).each do |name|
    define_method(:"test_what_malloc_adds_to_objects_is_no_native_memory_under_#{name}") do
      base = native_bytes("GC.disable", allocator: name)
      { 24 => 200_000, 1_025 => 30_000, 40_961 => 1_000 }.each do |bytes, count|
        native = native_bytes("GC.disable\n#{count}.times { 'r' * #{bytes} }", allocator: name)
        assert_in_delta 0, native - base, 1_200_000, "#{count} strings of #{bytes} bytes"
      end
    end
  end

  # Up to Ruby 3.2 they are in the transient heap, which malloc counts as a whole or not at all.
  def test_buffers_of_young_objects_are_no_native_memory
    base = native_bytes("GC.disable")
    ["Array.new(8)", "{ a: 1, b: 2 }", "ROW.new(1)", "WIDE.new"].each do |object|
      code = "ROW = Struct.new(*('a'..'j').map(&:to_sym)); " \
             "WIDE = Class.new { def initialize = 10.times { |at| instance_variable_set(\"@i\#{at}\", at) } }"
      assert_in_delta 0, native_bytes("#{code}; GC.disable; 60_000.times { #{object} }") - base, 1_200_000, object
    end
  end

  # What a class with a permanent name refers to is not the root's.
  def test_names_that_are_permanent
    permanent = { "Shop" => true, "Shop::Page_1::\u00c4" => true, "S" => true, "Page (cached)" => false, "page" => false, "a::B" => false, "A::b" => false, "A::" => false,
                  "A::::B" => false, "A:B" => false, "::A" => false, "_A" => false, "1A" => false, "A=" => false, "\#<Class:0x1>::A" => false }
    found = permanent.to_h do |name, _|
      lines = [{ type: "ROOT", root: "global_tbl", references: ["0x28"] }, { address: "0x28", type: "CLASS", name: name, references: ["0x50"], memsize: 500 },
               { address: "0x50", type: "STRING", memsize: 4000 }]
      [name, read_dump(lines.map { |line| "#{JSON.generate(line)}\n" })["holders"].none? { |one| one["kind"] == "global" }]
    end
    assert_equal permanent, found
  end

  private

  def native_bytes(code, allocator: nil)
    env = allocator ? Culet::Allocators.parse(allocator).environment({}) : {}
    with_objects("#{code}\nputs :up; $stdout.flush; sleep", env: env) { |pid| read(pid).fetch("native_bytes") }
  end

  def assert_kept(code, holder, way)
    with_objects("#{BIG}\n#{code}\n#{UP}") do |pid|
      return if refused?(pid, code)

      first = rows(read(pid)).first(2)
      found = first.find { |_, names, _| names.join(", ").match?(holder) }
      assert found, first.inspect
      assert_match way, found[2] if way
    end
  end
end
