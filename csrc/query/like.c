/* SQL's LIKE; see like.h.
 *
 * A pattern is literals with gaps around them: gap literal gap literal ... gap. A gap is a number
 * of characters (its _); an open gap (with a %) is that number or more. Matching goes from left to
 * right. If it fails, the literal behind the last open gap is searched further on. No earlier gap
 * needs another try: it has taken the first place, which leaves the most text to the rest.
 */
#include "query/like.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

struct gap {
    size_t characters;
    bool open;
};

struct literal {
    struct gap before;
    struct like_needle needle;
};

struct like {
    bool never;               /* ends in a lone escape character */
    size_t least;             /* bytes of the shortest text that matches */
    size_t count, longest;    /* of literals; the longest one's index */
    struct gap last;          /* behind the last literal */
    uint8_t *text;            /* of the literals, one behind the other */
    struct literal literals[];
};

static bool is_letter(uint8_t lower) { return lower >= 'a' && lower <= 'z'; }
static uint8_t lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }

/* ---- finding ------------------------------------------------------------------------------ */

/* The rarer a byte, the fewer places are tested twice. This guess suits text and code. */
static int frequency(uint8_t c)
{
    static const char common[] = "zqjxkvbgwypmfucdhlrsinoate";
    const char *found = c ? strchr(common, c) : NULL;
    return found ? 2 + (int)(found - common) : c == ' ' ? 30 : c < 0x20 ? 28 : c >= '0' && c <= '9' ? 12 : 1;
}

struct like_needle like_needle(const char *lower_case, size_t size)
{
    const uint8_t *text = (const uint8_t *)lower_case;
    struct like_needle needle = {text, size, 0, 0, 0, 0};
    if (!size)
        return needle;
    for (size_t i = 1; i < size; i++)
        if (frequency(text[i]) < frequency(text[needle.first]))
            needle.first = i;
    if (size > 1)
        needle.second = needle.first ? 0 : 1;
    for (size_t i = 0; i < size; i++)
        if (i != needle.first && frequency(text[i]) < frequency(text[needle.second]))
            needle.second = i;
    needle.first_case = is_letter(text[needle.first]) ? 0x20 : 0;
    needle.second_case = is_letter(text[needle.second]) ? 0x20 : 0;
    return needle;
}

static inline bool same(const uint8_t *at, const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (lower(at[i]) != text[i])
            return false;
    return true;
}

#define BLOCK 16
typedef uint8_t block __attribute__((vector_size(BLOCK)));

static inline block load(const uint8_t *p)
{
    block bytes;
    memcpy(&bytes, p, sizeof bytes);
    return bytes;
}

/* A bit for each byte that is not 0 (and then is 0xff). */
static inline uint32_t bits(block bytes)
{
#ifdef __SSE2__
    typedef char signed_block __attribute__((vector_size(BLOCK)));
    return (uint32_t)__builtin_ia32_pmovmskb128((signed_block)bytes);
#else
    uint64_t halves[2];
    uint32_t found = 0;
    memcpy(halves, &bytes, sizeof halves);
    if (!(halves[0] | halves[1])) /* nearly always */
        return 0;
    for (uint32_t i = 0; i < BLOCK; i++)
        found |= (uint32_t)(bytes[i] & 1) << i;
    return found;
#endif
}

/* The places from `at` on, one for each bit, at which both bytes of the needle are. */
static inline uint32_t candidates(const uint8_t *at, const struct like_needle *needle)
{
    block first = load(at + needle->first) | needle->first_case;
    block second = load(at + needle->second) | needle->second_case;
    return bits((block)(first == needle->text[needle->first]) &
                (block)(second == needle->text[needle->second]));
}

static const uint8_t *find(const uint8_t *p, const uint8_t *end, const struct like_needle *needle)
{
    size_t size = needle->size;
    if ((size_t)(end - p) < size)
        return NULL;
    const uint8_t *last = end - size; /* the last place it may be at */
    while (last - p >= BLOCK - 1) {
        for (uint32_t found = candidates(p, needle); found; found &= found - 1) {
            const uint8_t *at = p + __builtin_ctz(found);
            if (same(at, needle->text, size))
                return at;
        }
        p += BLOCK;
    }
    for (; p <= last; p++)
        if ((p[needle->first] | needle->first_case) == needle->text[needle->first] &&
            same(p, needle->text, size))
            return p;
    return NULL;
}

const void *like_needle_find(const struct like_needle *needle, const void *haystack, size_t size)
{
    if (!needle->size)
        return haystack;
    return size < needle->size ? NULL : find(haystack, (const uint8_t *)haystack + size, needle);
}

const void *like_find(const void *haystack, size_t size, const char *needle, size_t needle_size)
{
    struct like_needle made = like_needle(needle, needle_size);
    return like_needle_find(&made, haystack, size);
}

/* ---- patterns ----------------------------------------------------------------------------- */

/* The next part of a pattern. */
enum token { END, LITERAL, ANY, ONE, LONE_ESCAPE };

struct reader {
    const uint8_t *p, *end;
    uint8_t escape[UTF8_MAX];
    size_t escape_size;
};

/* *byte is the first byte of an escaped character; its other bytes are never special. */
static enum token next(struct reader *reader, uint8_t *byte)
{
    size_t left = (size_t)(reader->end - reader->p);
    if (!left)
        return END;
    if (reader->escape_size && left >= reader->escape_size &&
        !memcmp(reader->p, reader->escape, reader->escape_size)) {
        reader->p += reader->escape_size;
        if (reader->p == reader->end)
            return LONE_ESCAPE;
        *byte = *reader->p++;
        return LITERAL;
    }
    *byte = *reader->p++;
    return *byte == '%' ? ANY : *byte == '_' ? ONE : LITERAL;
}

struct like *like_new(const char *pattern, size_t size, int escape)
{
    struct reader start = {.p = (const uint8_t *)pattern, .end = (const uint8_t *)pattern + size}, reader;
    struct gap gap = {0, false};
    enum token token, before = ANY;
    size_t count = 0;
    uint8_t byte = 0, *p;

    start.escape_size = escape < 0 ? 0 : utf8_put(start.escape, (uint32_t)escape);
    for (reader = start; (token = next(&reader, &byte)) != END; before = token)
        count += token == LITERAL && before != LITERAL;

    struct like *like = calloc(1, sizeof *like + count * sizeof *like->literals);
    if (!like || !(like->text = p = malloc(size ? size : 1))) {
        free(like);
        return NULL;
    }
    before = ANY;
    for (reader = start; (token = next(&reader, &byte)) != END; before = token) {
        if (token == LONE_ESCAPE) {
            like->never = true;
        } else if (token == ANY) {
            gap.open = true;
        } else if (token == ONE) {
            gap.characters++;
        } else {
            if (before != LITERAL) {
                like->literals[like->count++] = (struct literal){.before = gap, .needle.text = p};
                like->least += gap.characters;
                gap = (struct gap){0, false};
            }
            like->literals[like->count - 1].needle.size++;
            *p++ = lower(byte);
        }
    }
    like->last = gap;
    like->least += gap.characters + (size_t)(p - like->text);
    for (size_t i = 0; i < like->count; i++) {
        struct like_needle *needle = &like->literals[i].needle;
        *needle = like_needle((const char *)needle->text, needle->size);
        if (needle->size > like->literals[like->longest].needle.size)
            like->longest = i;
    }
    return like;
}

void like_free(struct like *like)
{
    if (like)
        free(like->text);
    free(like);
}

const char *like_literal(const struct like *like, size_t *size)
{
    *size = like->count ? like->literals[like->longest].needle.size : 0;
    return *size ? (const char *)like->literals[like->longest].needle.text : "";
}

bool like_is_literal(const struct like *like)
{
    const struct gap *first = like->count ? &like->literals[0].before : &like->last;
    return !like->never && like->count <= 1 && !first->open && !first->characters && !like->last.open &&
           !like->last.characters;
}

/* ---- matching ----------------------------------------------------------------------------- */

/* Skips so many characters, as SQLite counts them: a byte and all continuation bytes behind it.
 * NULL: there are fewer. */
static const uint8_t *pass(const uint8_t *p, const uint8_t *end, size_t characters)
{
    while (characters--) {
        if (p == end)
            return NULL;
        if (*p++ >= 0xc0)
            while (p < end && (*p & 0xc0) == 0x80)
                p++;
    }
    return p;
}

bool like_matches(const struct like *like, const char *text, size_t size)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + size;
    const uint8_t *again = NULL; /* next place to search the literal behind the last open gap */
    size_t open = 0, i = 0;      /* that literal's index */

    if (like->never || size < like->least)
        return false;
    /* a literal at the very end decides most cases at once */
    if (like->count && !like->last.open && !like->last.characters) {
        const struct like_needle *needle = &like->literals[like->count - 1].needle;
        if (!same(end - needle->size, needle->text, needle->size))
            return false;
    }
    for (;;) {
        const struct gap *gap = i < like->count ? &like->literals[i].before : &like->last;
        p = pass(p, end, gap->characters);
        if (!p)
            return false; /* further on fewer are left */
        if (i == like->count) {
            if (gap->open || p == end)
                return true;
        } else {
            const struct like_needle *needle = &like->literals[i].needle;
            if (gap->open) {
                p = find(p, end, needle);
                if (!p)
                    return false;
                again = p + 1;
                open = i;
            } else if ((size_t)(end - p) < needle->size) {
                return false;
            }
            if (gap->open || same(p, needle->text, needle->size)) {
                p += needle->size;
                i++;
                continue;
            }
        }
        /* not here */
        if (!again)
            return false;
        p = find(again, end, &like->literals[open].needle);
        if (!p)
            return false;
        again = p + 1;
        p += like->literals[open].needle.size;
        i = open + 1;
    }
}
