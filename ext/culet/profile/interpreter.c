#include "profile/interpreter.h"

#include <ruby.h>

#include <link.h>
#include <string.h>

#include "profile/active_profile.h"

#define WAYS 3

static struct culet_interpreter interpreter;

/* Used during culet_interpreter_find. */
static uint64_t stack[CULET_PROFILE_FRAMES];
static size_t depth;

const struct culet_interpreter *culet_interpreter(void)
{
    return &interpreter;
}

/* ---- C -> Ruby -> C ---- */

/* The end of each way. */
static VALUE take_stack(VALUE self)
{
    depth = culet_active_profile->capture(stack, CULET_PROFILE_FRAMES);
    return Qnil;
}

/* The ways. Each has a result of its own, so that none ends by a jump. */
static VALUE by_method(VALUE self, VALUE ruby)
{
    rb_funcall(ruby, rb_intern("call_method"), 1, self);
    return INT2FIX(0);
}

static VALUE by_block(VALUE self, VALUE ruby)
{
    rb_yield(self);
    return INT2FIX(1);
}

static VALUE by_proc(VALUE self, VALUE proc)
{
    rb_proc_call(proc, rb_ary_new_from_args(1, self));
    return INT2FIX(2);
}

static const char ruby_code[] = "Module.new do\n"
                                "  def self.call_method(probe) = [probe.take_stack]\n"
                                "  def self.call(probe)\n"
                                "    case yield\n"
                                "    when 0 then probe.by_method(self)\n"
                                "    when 1 then probe.by_block(self) { |one| [one.take_stack] }\n"
                                "    when 2 then probe.by_proc(proc { |one| [one.take_stack] })\n"
                                "    end\n"
                                "  end\n"
                                "end\n";

/* ---- the functions between ---- */

static uintptr_t address_of(VALUE (*function)(VALUE, VALUE))
{
    uintptr_t address;

    memcpy(&address, &function, sizeof(address));
    return address;
}

static bool function_at(uintptr_t pc, struct culet_range *range)
{
    return culet_active_profile->function(pc, &range->start, &range->past);
}

/* The functions between take_stack and the function that called Ruby. Returns their number; 0: not known. */
static size_t between(uintptr_t outer, struct culet_range *functions)
{
    struct culet_range innermost, outermost;
    VALUE (*end)(VALUE) = take_stack;
    uintptr_t inner;
    size_t at = 0, count = 0;

    memcpy(&inner, &end, sizeof(inner));
    if (!function_at(inner, &innermost) || !function_at(outer, &outermost))
        return 0;
    while (at < depth && !culet_range_has(&innermost, (uintptr_t)stack[at]))
        at++;
    for (at++; at < depth && !culet_range_has(&outermost, (uintptr_t)stack[at]); at++)
        if (!function_at((uintptr_t)stack[at] - 1, &functions[count++]))
            return 0;
    return at < depth ? count : 0;
}

static size_t times(const struct culet_range *functions, size_t count, uintptr_t start)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += functions[i].start == start;
    return found;
}

/* Keeps the functions that the list has too. */
static void intersect(const struct culet_range *functions, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < interpreter.count; i++)
        if (times(functions, count, interpreter.functions[i].start) == 1)
            interpreter.functions[kept++] = interpreter.functions[i];
    interpreter.count = kept;
}

static int find_image(struct dl_phdr_info *info, size_t size, void *data)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 &&
            interpreter.run.start - start < segment->p_memsz) {
            interpreter.image = (struct culet_range){start, start + segment->p_memsz};
            return 1;
        }
    }
    return 0;
}

static VALUE number(RB_BLOCK_CALL_FUNC_ARGLIST(unused, data))
{
    return data;
}

/* Not by rb_eval_string, which refers to the calling Ruby frame: that of a file which Ruby is reading has no code yet, and
 * in a trap handler that runs meanwhile Ruby 3.3 crashes. */
static VALUE evaluate(const char *text)
{
    VALUE compiler = rb_path2class("RubyVM::InstructionSequence"), source = rb_str_new_cstr(text);
    VALUE code = rb_funcall(compiler, rb_intern("compile"), 1, source);

    return rb_funcall(code, rb_intern("eval"), 0);
}

void culet_interpreter_find(void)
{
    static const struct {
        const char *name;
        VALUE (*function)(VALUE, VALUE);
    } ways[WAYS] = {{"by_method", by_method}, {"by_block", by_block}, {"by_proc", by_proc}};
    struct culet_range functions[CULET_PROFILE_FRAMES];
    VALUE probe = rb_obj_alloc(rb_cObject), ruby = evaluate(ruby_code);
    VALUE argument = probe;

    rb_define_singleton_method(probe, "take_stack", take_stack, 0);
    for (int i = 0; i < WAYS; i++) {
        size_t count;
        rb_define_singleton_method(probe, ways[i].name, ways[i].function, 1);
        depth = 0;
        rb_block_call(ruby, rb_intern("call"), 1, &argument, number, INT2FIX(i));
        count = between(address_of(ways[i].function), functions);
        if (i == 0) {
            interpreter.count = count < CULET_INTERPRETER_FUNCTIONS ? count : 0;
            memcpy(interpreter.functions, functions, interpreter.count * sizeof(*functions));
        }
        intersect(functions, count);
    }
    if (interpreter.count > 0) {
        interpreter.run = interpreter.functions[interpreter.count - 1];
        (void)dl_iterate_phdr(find_image, NULL);
    }
    RB_GC_GUARD(probe);
    RB_GC_GUARD(ruby);
}

/* Not where Ruby calls the job in another way. */
void culet_interpreter_find_deferred(uintptr_t return_address)
{
    struct culet_range found;

    if (interpreter.has_deferred || interpreter.count == 0 || !culet_range_has(&interpreter.image, return_address) ||
        !function_at(return_address - 1, &found) || times(interpreter.functions, interpreter.count, found.start) > 0)
        return;
    interpreter.deferred = found;
    interpreter.has_deferred = true;
}
