/* Required literals: words that values leave in records; see required_literal.h. */
#include "query/required_literal.h"

#include <stdlib.h>
#include <string.h>

static bool is_hex(uint8_t c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
static uint8_t lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_';
}

/* The length of the word's beginning that may be the end of an escape. */
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

/* Whether text.c and known.c may write the word (in lower case) though the value has no such bytes.
 * They may also write a number behind a word (int64, nan7), and a j behind a number. */
static bool is_made(const char *word, size_t size)
{
    static const char *const made[] = {
        "none", "true", "false", "ellipsis", "notimplemented", "redacted", "unbound", "deleted", "unknown",
        "frozenset", "function", "bound", "method", "built", "class", "module", "inf", "snan",
        "infinity", "microseconds", "days", "tzinfo", "fold", "utc", "ordereddict", "namespace", "contextvar",
        "re", "compile", "ignorecase", "locale", "multiline", "dotall", "unicode", "verbose", "debug", "ascii",
        "object", "span", "match", "weakref", "weakproxy", "dead", "unlocked", "owner", "count", "file", "line",
        "code", "initial", "started", "stopped", "daemon", "bool", "uint", "float", "dtype", "shape",
    };
    if (word[size - 1] == 'j')
        size--;
    size_t stem = size;
    while (stem > 0 && word[stem - 1] >= '0' && word[stem - 1] <= '9')
        stem--;
    bool is = true; /* a number? */
    for (size_t i = 0; i < size; i++)
        is &= is_hex((uint8_t)word[i]) || word[i] == 'x';
    for (size_t i = 0; i < sizeof made / sizeof *made && !is; i++)
        is = like_find(made[i], strlen(made[i]), word, stem);
    return is;
}

bool required_literal_make(struct required_literal *literal, const char *shown, size_t size)
{
    size_t best = 0, best_size = 0, length;
    char *text = malloc(size ? size : 1);

    *literal = (struct required_literal){0};
    if (!text)
        return false;
    for (size_t i = 0; i < size; i++)
        text[i] = (char)lower((uint8_t)shown[i]);
    for (size_t start = 0; start < size; start += length + 1) {
        for (length = 0; start + length < size && is_word((uint8_t)text[start + length]); length++)
            ;
        if (length < 3 || is_made(text + start, length))
            continue;
        size_t head = escape_end(text + start, length);
        if (length - head >= 2 && length - head > best_size - literal->head) {
            best = start;
            best_size = length;
            literal->head = head;
        }
    }
    if (!best_size) {
        free(text);
        return true;
    }
    memmove(text, text + best, best_size);
    literal->text = text;
    literal->rest = like_needle(text + literal->head, best_size - literal->head);
    return true;
}

const uint8_t *required_literal_find(const struct required_literal *literal, const uint8_t *bytes,
                                     size_t size,
                                     const uint8_t *from)
{
    const uint8_t *p = from, *end = bytes + size;
    while ((p = like_needle_find(&literal->rest, p, (size_t)(end - p)))) {
        const uint8_t *before = p;
        size_t head = literal->head;
        while (head && before > bytes && lower(before[-1]) == (uint8_t)literal->text[head - 1]) {
            before--;
            head--;
        }
        if (!head || (before > bytes && (before[-1] < ' ' || before[-1] >= 0x7f)))
            return p;
        p++;
    }
    return NULL;
}

bool required_literals_have(const struct required_literals *literals, const struct required_literal *literal)
{
    for (size_t i = 0; i < literals->count; i++)
        if (literals->all[i] == literal)
            return true;
    return false;
}

void required_literal_free(struct required_literal *literal) { free(literal->text); }
