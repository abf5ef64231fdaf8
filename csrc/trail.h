/* What a text leaves in the bytes of a record whose value shows it.
 *
 * Most of what a text shows of a value stands in its record just so: the bytes of strings and names.
 * So a word that a text has to contain has to stand there too; unless it may come from something that
 * is written in other ways: numbers and addresses, the words of text.c itself, names of types (which
 * are looked through each time), and escapes. A word holds only letters, digits and _, and there is
 * something else between any two pieces of a text; but for an escape, of which a word's beginning may
 * be the end: \n, \x1b, \u2028. Then there is a byte in the record that is not printable, and the
 * word's rest behind it.
 *
 * No Python, no SQLite.
 */
#ifndef PYTRACE_TRAIL_H
#define PYTRACE_TRAIL_H

#include "like.h"

/* A word; zeroed there is none (text NULL). */
struct trail {
    char *text;              /* in lower case */
    size_t head;             /* so much of it may be an escape's end */
    struct like_needle rest; /* behind the head */
};

/* The longest word of a literal that leaves a trail. False: no memory. */
bool trail_make(struct trail *trail, const char *literal, size_t size);
void trail_free(struct trail *trail);

/* Where these bytes (of records' values, or a type's name) have it, from a place among them on: the place
 * of the part behind the head; NULL: nowhere. */
const uint8_t *trail_find(const struct trail *trail, const uint8_t *bytes, size_t size, const uint8_t *from);

static inline bool trail_is_in(const struct trail *trail, const uint8_t *bytes, size_t size)
{
    return trail_find(trail, bytes, size, bytes) != NULL;
}

/* Some trails; no more, as each is looked for in all bytes. */
enum { TRAILS_MAX = 8 };
struct trails {
    const struct trail *all[TRAILS_MAX];
    size_t count;
};

bool trails_have(const struct trails *trails, const struct trail *trail);

#endif
