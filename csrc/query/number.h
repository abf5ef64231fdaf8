/* Numbers as Python's repr writes them, whatever the locale. No Python, no allocation.
 *
 * Each writes its text (ASCII, no NUL) and returns its length; the buffer has room for the constant
 * named after it.
 */
#ifndef PYTRACE_NUMBER_H
#define PYTRACE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBER_INTEGER_MAX 20
#define NUMBER_FLOATING_MAX 32
#define NUMBER_BIG_MAX 5120

size_t number_integer(int64_t n, char *text);

/* The fewest digits that give the same number again, as float.__repr__. */
size_t number_floating(double number, char *text);

/* An int beyond 64 bits, as Value.big has it: a byte 0 or 1 (negative), then the magnitude, the
 * most significant byte first. bits: the whole length if the number was cut, else 0. If not all
 * digits are known (or fit), *whole is false, and the text has only the leading digits that are
 * certainly right. */
size_t number_big(const uint8_t *bytes, size_t size, uint64_t bits, char *text, bool *whole);

#endif
