/* Required literals: words in the bytes of each record whose value shows a text.
 *
 * Most of a value's text stands in its record unchanged: the bytes of strings and names. So a word
 * that the text has to contain has to stand in the record, too. Some words may come from other
 * sources: numbers and addresses, the words of text.c and known.c, names of types, of named tuples'
 * items and of attributes (which are searched each time), and escapes. A word holds only letters,
 * digits and _, and other characters stand between any two pieces of a text. Escapes are the
 * exception: a word's beginning may be the end of one (\n, \x1b, \u2028). Then the record has an
 * unprintable byte, followed by the word's rest.
 *
 * No Python, no SQLite.
 */
#ifndef PYTRACE_REQUIRED_LITERAL_H
#define PYTRACE_REQUIRED_LITERAL_H

#include "query/like.h"

/* A word; a zeroed one is none (text NULL). */
struct required_literal {
    char *text;              /* in lower case */
    size_t head;             /* bytes that may be an escape's end */
    struct like_needle rest; /* behind the head */
};

/* The longest required word of a text that is to be shown; there may be none. False: no memory. */
bool required_literal_make(struct required_literal *literal, const char *shown, size_t size);
void required_literal_free(struct required_literal *literal);

/* The place of a required literal in bytes (of records' values, or of a type's name), from a place
 * in them on: that of the part behind the head; NULL: nowhere. */
const uint8_t *required_literal_find(const struct required_literal *literal, const uint8_t *bytes,
                                     size_t size,
                                     const uint8_t *from);

static inline bool required_literal_is_in(const struct required_literal *literal, const uint8_t *bytes,
                                          size_t size)
{
    return required_literal_find(literal, bytes, size, bytes) != NULL;
}

/* Some required literals; no more, as each is looked for in all bytes. */
enum { REQUIRED_LITERALS_MAX = 8 };
struct required_literals {
    const struct required_literal *all[REQUIRED_LITERALS_MAX];
    size_t count;
};

bool required_literals_have(const struct required_literals *literals, const struct required_literal *literal);

#endif
