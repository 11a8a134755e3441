/* profile/control_frames.h - the code of frames that eval runs inside of a method.
 *
 * rb_profile_frames reports the method for these, so that the file would be the method's with a line of the evaluated
 * text. The code itself is in Ruby's control frames. Their layout is found by comparing them with what Ruby reports,
 * and each stack is compared again. Where they differ, and from Ruby 4.0 on, the methods stay. */
#pragma once

#include <ruby.h>

/* Finds the layout. Once, in a Ruby thread. */
void culet_control_frames_prepare(void);

/* Puts the code in place of methods from another file, in what rb_profile_frames returned for the calling thread.
 * limit: how many frames it could return. Allocates nothing. */
void culet_control_frames_correct(VALUE *values, int count, int limit);

/* The path of a frame: absolute, or as given to eval. Allocates nothing. */
VALUE culet_frame_path(VALUE value);
