/* SQL's LIKE as in SQLite: % any characters, _ one character, ASCII letters in either case. A
 * pattern is compiled once, then matched against millions of texts. Texts are UTF-8; other bytes
 * count as characters, too. No Python, no SQLite.
 */
#ifndef PYTRACE_LIKE_H
#define PYTRACE_LIKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct like; /* opaque */

/* `escape`: the character before which % and _ (and it) stand for themselves; -1: none.
 * NULL: no memory. A pattern that ends in a lone escape character matches nothing, as in SQLite. */
struct like *like_new(const char *pattern, size_t size, int escape);
void like_free(struct like *like);
bool like_matches(const struct like *like, const char *text, size_t size);

/* The pattern's longest literal piece (no wildcard in it), in lower case: each text that matches
 * contains it, in any case. Empty if there is none. */
const char *like_literal(const struct like *like, size_t *size);

/* Whether the pattern is one literal without wildcards. */
bool like_is_literal(const struct like *like);

/* The position of a lower-case ASCII needle in a haystack, ASCII letters in either case; NULL:
 * nowhere. Bytes beyond ASCII compare as they are. Fast: some bytes a cycle. */
const void *like_find(const void *haystack, size_t size, const char *needle, size_t needle_size);

/* The same for a needle that is searched many times. It refers to its text. */
struct like_needle {
    const uint8_t *text;
    size_t size;
    size_t first, second;            /* places of the bytes that are looked at first */
    uint8_t first_case, second_case; /* the bit in which these differ by case, or 0 */
};
struct like_needle like_needle(const char *needle, size_t size);
const void *like_needle_find(const struct like_needle *needle, const void *haystack, size_t size);

#endif
