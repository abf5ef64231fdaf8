/* Decimal digits of a number, without the C library's formatting. */
#ifndef PYTRACE_DECIMAL_H
#define PYTRACE_DECIMAL_H

#include <stdint.h>

#define DECIMAL_MAX 20 /* digits of 64 bits */

/* Writes the digits so that they stop at `end`; returns their start. */
static inline char *decimal_before(char *end, uint64_t number)
{
    do
        *--end = (char)('0' + number % 10);
    while (number /= 10);
    return end;
}

#endif
