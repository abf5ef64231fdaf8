/* Arrays that grow. Whoever grows an array frees it. */
#ifndef PYTRACE_ARRAY_H
#define PYTRACE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `count` elements of `size` bytes. `array` is the address of the pointer to them,
 * *capacity the number that there is room for; both are 0 at first. False: no memory, and the array
 * is unchanged. */
static inline bool array_reserve(void *array, size_t *capacity, size_t count, size_t size)
{
    size_t larger = *capacity < 8 ? 16 : *capacity * 2;
    void *grown;

    if (count <= *capacity)
        return true;
    if (larger < count)
        larger = count;
    if (larger > PTRDIFF_MAX / size)
        return false;
    memcpy(&grown, array, sizeof grown); /* a cast would break C's aliasing rules */
    if (!(grown = realloc(grown, larger * size)))
        return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = larger;
    return true;
}

#endif
