/* Trails of values in the bytes of records; see trail.h. */
#include "trail.h"

#include <stdlib.h>
#include <string.h>

static bool is_hex(uint8_t c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
static uint8_t lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_';
}

/* How much of its beginning may be the end of an escape. */
static size_t escape_end(const char *word, size_t size)
{
    size_t start = 0, digits = 8, head;
    if (*word == 'n' || *word == 'r' || *word == 't')
        return 1;
    if (*word == 'x')
        start = 1, digits = 2;
    else if (*word == 'u')
        start = 1;
    for (head = start; head < size && head < start + digits && is_hex((uint8_t)word[head]); head++)
        ;
    return head;
}

/* Whether text.c may write it (in lower case) where a value has no such bytes. */
static bool is_made(const char *word, size_t size)
{
    static const char *const made[] = {
        "none", "true", "false", "ellipsis", "notimplemented", "redacted", "unbound", "unknown", "frozenset",
        "function", "bound", "method", "built", "class", "module", "inf", "nan",
    };
    bool is = true; /* a number? */
    for (size_t i = 0; i < size; i++)
        is &= is_hex((uint8_t)word[i]) || word[i] == 'x';
    for (size_t i = 0; i < sizeof made / sizeof *made && !is; i++)
        is = like_find(made[i], strlen(made[i]), word, size);
    return is;
}

bool trail_make(struct trail *trail, const char *literal, size_t size)
{
    size_t best = 0, best_size = 0, length;
    char *text = malloc(size ? size : 1);

    *trail = (struct trail){0};
    if (!text)
        return false;
    for (size_t i = 0; i < size; i++)
        text[i] = (char)lower((uint8_t)literal[i]);
    for (size_t start = 0; start < size; start += length + 1) {
        for (length = 0; start + length < size && is_word((uint8_t)text[start + length]); length++)
            ;
        if (length < 3 || is_made(text + start, length))
            continue;
        size_t head = escape_end(text + start, length);
        if (length - head >= 2 && length - head > best_size - trail->head) {
            best = start;
            best_size = length;
            trail->head = head;
        }
    }
    if (!best_size) {
        free(text);
        return true;
    }
    memmove(text, text + best, best_size);
    trail->text = text;
    trail->rest = like_needle(text + trail->head, best_size - trail->head);
    return true;
}

const uint8_t *trail_find(const struct trail *trail, const uint8_t *bytes, size_t size, const uint8_t *from)
{
    const uint8_t *p = from, *end = bytes + size;
    while ((p = like_needle_find(&trail->rest, p, (size_t)(end - p)))) {
        const uint8_t *before = p;
        size_t head = trail->head;
        while (head && before > bytes && lower(before[-1]) == (uint8_t)trail->text[head - 1]) {
            before--;
            head--;
        }
        if (!head || (before > bytes && (before[-1] < ' ' || before[-1] >= 0x7f)))
            return p;
        p++;
    }
    return NULL;
}

bool trails_have(const struct trails *trails, const struct trail *trail)
{
    for (size_t i = 0; i < trails->count; i++)
        if (trails->all[i] == trail)
            return true;
    return false;
}

void trail_free(struct trail *trail) { free(trail->text); }
