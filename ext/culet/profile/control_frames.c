#include "profile/control_frames.h"

#include <ruby/debug.h>
#include <ruby/version.h>
#include <stdbool.h>
#include <string.h>

#include "common/imemo.h"
#include "reader/layouts/ruby_slot.h"
#include "sampler/core/profile.h"

VALUE culet_frame_path(VALUE value)
{
    VALUE path = rb_profile_frame_absolute_path(value);

    return RB_TYPE_P(path, T_STRING) ? path : rb_profile_frame_path(value);
}

#if defined(HAVE_RUBY_CURRENT_EC) && RUBY_API_VERSION_MAJOR < 4

extern __thread uintptr_t *ruby_current_ec;

/* Words of an execution context and of a control frame, the same since Ruby 2.5. */
enum { EC_STACK, EC_STACK_WORDS, EC_FRAME };
enum { FRAME_PC, FRAME_CODE = 2, SMALLEST_FRAME = 6, LARGEST_FRAME = 9 };

struct layout {
    size_t frame_words; /* 0: not known */
    size_t unreported;  /* outermost frames that Ruby does not report */
    bool without_pc;    /* frames without a program counter are reported */
};

static struct layout layout;

static bool is_internal(VALUE value, unsigned kind)
{
    return value != 0 && value % sizeof(VALUE) == 0 && RB_BUILTIN_TYPE(value) == T_IMEMO &&
           culet_imemo_kind(RBASIC(value)->flags) == kind;
}

/* The next frame with code. Returns NULL at the end. */
static const uintptr_t *next_code(const struct layout *how, const uintptr_t *frame, const uintptr_t *past)
{
    for (; frame + (1 + how->unreported) * how->frame_words <= past; frame += how->frame_words)
        if (is_internal(frame[FRAME_CODE], RUBY_SLOT_IMEMO_ISEQ) && (how->without_pc || frame[FRAME_PC] != 0))
            return frame;
    return NULL;
}

static bool is_c(VALUE value)
{
    return NIL_P(rb_profile_frame_first_lineno(value));
}

/* The codes of the frames, Qnil for C functions. Returns how many frames are reported as their code; -1: the control
 * frames are not what Ruby reported. */
static int read_codes(const struct layout *how, const VALUE *values, int count, int limit, VALUE *codes)
{
    const uintptr_t *frame, *past;
    int same = 0;

    if (ruby_current_ec == NULL || ruby_current_ec[EC_FRAME] == 0)
        return -1;
    frame = (const uintptr_t *)ruby_current_ec[EC_FRAME];
    past = (const uintptr_t *)ruby_current_ec[EC_STACK] + ruby_current_ec[EC_STACK_WORDS];
    if ((size_t)(past - frame) % how->frame_words != 0)
        return -1;
    for (int i = 0; i < count; i++) {
        codes[i] = Qnil;
        if (is_c(values[i]))
            continue;
        if ((frame = next_code(how, frame, past)) == NULL)
            return -1;
        codes[i] = frame[FRAME_CODE];
        frame += how->frame_words;
        same += codes[i] == values[i];
        if (codes[i] != values[i] && !is_internal(values[i], RUBY_SLOT_IMEMO_METHOD_ENTRY))
            return -1;
    }
    return count < limit && next_code(how, frame, past) != NULL ? -1 : same;
}

static bool same_path(VALUE value, VALUE code)
{
    VALUE one = culet_frame_path(value), other = culet_frame_path(code);

    if (one == other || !RB_TYPE_P(one, T_STRING) || !RB_TYPE_P(other, T_STRING))
        return true;
    return RSTRING_LEN(one) == RSTRING_LEN(other) &&
           memcmp(RSTRING_PTR(one), RSTRING_PTR(other), (size_t)RSTRING_LEN(one)) == 0;
}

void culet_control_frames_correct(VALUE *values, int count, int limit)
{
    VALUE codes[CULET_PROFILE_FRAMES];

    if (layout.frame_words == 0 || count > CULET_PROFILE_FRAMES || read_codes(&layout, values, count, limit, codes) < 0)
        return;
    for (int i = 0; i < count; i++)
        if (!NIL_P(codes[i]) && codes[i] != values[i] && !same_path(values[i], codes[i]))
            values[i] = codes[i];
}

static VALUE find_layout(VALUE self)
{
    VALUE values[CULET_PROFILE_FRAMES], codes[CULET_PROFILE_FRAMES];
    int lines[CULET_PROFILE_FRAMES];
    int count = rb_profile_frames(0, CULET_PROFILE_FRAMES, values, lines);

    for (size_t words = SMALLEST_FRAME; words <= LARGEST_FRAME; words++)
        for (unsigned variant = 0; variant < 4; variant++) {
            struct layout attempt = {words, variant / 2, variant % 2};
            if (read_codes(&attempt, values, count, CULET_PROFILE_FRAMES, codes) > 0) {
                layout = attempt;
                return Qnil;
            }
        }
    return Qnil;
}

void culet_control_frames_prepare(void)
{
    VALUE probe = rb_obj_alloc(rb_cObject);

    rb_define_singleton_method(probe, "find_layout", find_layout, 0);
    /* code at the top level of a program is reported as such, and a C function lies between */
    rb_funcall(rb_eval_string("TOPLEVEL_BINDING.eval('proc { |probe| [1].map { probe.find_layout } }')"),
               rb_intern("call"), 1, probe);
}

#else

void culet_control_frames_prepare(void)
{
}

void culet_control_frames_correct(VALUE *values, int count, int limit)
{
}

#endif
