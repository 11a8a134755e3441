/* reading/ruby_reading.h - Culet::Reading: the reading as Ruby sees it. */
#ifndef CULET_READING_RUBY_READING_H
#define CULET_READING_RUBY_READING_H

#include <ruby.h>

/*
 * Defines Culet::Reading:
 *   FIELDS         the names of the members of struct culet_reading, in the order of a black box's record
 *   REST_PER_COST  how many times as long as it took a count of malloc's blocks rests
 *   read(folder, files)
 */
void culet_init_reading(VALUE culet);

#endif
