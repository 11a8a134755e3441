/* A function between its caller and a callback, with a frame of a size that is not the same in each library. */
#include <stdlib.h>
#include <string.h>

int through(int (*callback)(void *), void *data);
int through_libc(int (*callback)(const void *, const void *));

int through(int (*callback)(void *), void *data)
{
    volatile char frame[FRAME];

    memset((char *)frame, 1, sizeof frame);
    return callback(data) + frame[FRAME / 2];
}

/* The call goes through the procedure linkage table. */
int through_libc(int (*callback)(const void *, const void *))
{
    volatile int numbers[FRAME / 8] = {1};
    int key = 1;

    return bsearch(&key, (const void *)numbers, 1, sizeof *numbers, callback) != NULL;
}
