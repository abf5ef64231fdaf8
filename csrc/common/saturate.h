/* Arithmetic that stops at the ends of its type. Numbers that come from a file may be any: their
 * sums and differences must neither overflow (which is undefined) nor wrap (which would change
 * their order).
 */
#ifndef PYTRACE_SATURATE_H
#define PYTRACE_SATURATE_H

#include <stdint.h>

static inline int64_t saturate_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? b < 0 ? INT64_MIN : INT64_MAX : sum;
}

static inline int64_t saturate_subtract(int64_t a, int64_t b)
{
    int64_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? b < 0 ? INT64_MAX : INT64_MIN : difference;
}

/* A signed number, and an unsigned one more. */
static inline int64_t saturate_advance(int64_t a, uint64_t more)
{
    return more > (uint64_t)INT64_MAX - (uint64_t)a ? INT64_MAX : (int64_t)((uint64_t)a + more);
}

/* The nearest signed number. */
static inline int64_t saturate_signed(uint64_t n) { return n > INT64_MAX ? INT64_MAX : (int64_t)n; }

__extension__ typedef __int128 saturate_wide;
static inline int64_t saturate_narrow(saturate_wide n)
{
    return n > INT64_MAX ? INT64_MAX : n < INT64_MIN ? INT64_MIN : (int64_t)n;
}

#endif
