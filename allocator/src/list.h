/* list.h - doubly linked lists of <sys/queue.h>, which musl does not have: the operations that the allocator uses. */
#pragma once

#if __has_include(<sys/queue.h>)
#include <sys/queue.h>
#else

#define LIST_HEAD(name, type)                                                                                          \
    struct name {                                                                                                      \
        struct type *lh_first;                                                                                         \
    }

/* le_prev: the pointer that leads to this element, the head's or the previous element's. */
#define LIST_ENTRY(type)                                                                                               \
    struct {                                                                                                           \
        struct type *le_next;                                                                                          \
        struct type **le_prev;                                                                                         \
    }

#define LIST_FIRST(head) ((head)->lh_first)
#define LIST_NEXT(element, field) ((element)->field.le_next)
#define LIST_FOREACH(element, head, field)                                                                             \
    for ((element) = LIST_FIRST(head); (element); (element) = LIST_NEXT(element, field))

#define LIST_INSERT_HEAD(head, element, field)                                                                         \
    do {                                                                                                               \
        LIST_NEXT(element, field) = LIST_FIRST(head);                                                                  \
        if (LIST_FIRST(head))                                                                                          \
            LIST_FIRST(head)->field.le_prev = &LIST_NEXT(element, field);                                              \
        LIST_FIRST(head) = (element);                                                                                  \
        (element)->field.le_prev = &LIST_FIRST(head);                                                                  \
    } while (0)

#define LIST_REMOVE(element, field)                                                                                    \
    do {                                                                                                               \
        if (LIST_NEXT(element, field))                                                                                 \
            LIST_NEXT(element, field)->field.le_prev = (element)->field.le_prev;                                       \
        *(element)->field.le_prev = LIST_NEXT(element, field);                                                         \
    } while (0)

#endif
