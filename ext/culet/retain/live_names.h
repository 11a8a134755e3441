/* retain/live_names.h - names of classes, holders and references in a live heap. */
#pragma once

#include "retain/live_heap.h"

uint64_t culet_live_class_of(struct culet_graph *graph, uint32_t id);
void culet_live_write_class(struct culet_graph *graph, uint64_t key, struct culet_buffer *text);
void culet_live_write_holder(struct culet_graph *graph, const struct culet_holder *holder, struct culet_buffer *text,
                             struct culet_buffer *file, long *line);
void culet_live_named_references(struct culet_graph *graph, uint32_t id, culet_named_edge_function *edge, void *data);
const char *culet_live_content(struct culet_graph *graph, uint32_t id, size_t *length);
bool culet_live_shares_content(struct culet_graph *graph, uint32_t id);
