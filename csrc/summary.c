/* Making and reading the summary of a segment; see summary.h. The dumper makes one of every chunk it
 * stores, so this has a loop of its own, lighter than segment_next, and without branches on what
 * alternates from record to record. */
#include "summary.h"

#include <stdlib.h>

/* Codes are numbered from 1 in the order in which they are first seen, so that they are counted in a
 * table. A number that no program reaches (the record is nonsense) is put into a list instead. */
#define TABLE_FIRST (1u << 12) /* entries */
#define TABLE_LAST (1u << 22)
#define SEEN (1u << 31) /* in a table's entry, above the number of calls; a chunk has fewer records */
#define WORD_BITS 64u
#define CODE_MAX 10     /* bytes of a code in the list: two varints of 32 bits */

struct far_code {
    uint32_t number, calls;
};

struct summary_maker {
    uint32_t *table; /* by code number; all 0 between two segments */
    uint64_t *seen;  /* a bit for each entry that is not 0: so they are found in order */
    uint32_t table_size;
    uint32_t seen_count;
    struct far_code *far; /* one for each record of such a code, until they are sorted */
    size_t far_count, far_size;
    uint8_t *codes;
    size_t codes_size;
};

struct summary_maker *summary_maker_new(void)
{
    return calloc(1, sizeof(struct summary_maker));
}

void summary_maker_free(struct summary_maker *maker)
{
    if (!maker)
        return;
    free(maker->table);
    free(maker->seen);
    free(maker->far);
    free(maker->codes);
    free(maker);
}

/* ---- counting ----------------------------------------------------------------------------- */

static bool grow_table(struct summary_maker *maker, uint32_t number)
{
    uint32_t size = maker->table_size ? maker->table_size : TABLE_FIRST;
    uint32_t *table;
    uint64_t *seen;

    while (size <= number)
        size *= 2;
    table = calloc(size, sizeof *table);
    seen = calloc(size / WORD_BITS, sizeof *seen);
    if (!table || !seen) {
        free(table);
        free(seen);
        return false;
    }
    if (maker->table_size) {
        memcpy(table, maker->table, maker->table_size * sizeof *table);
        memcpy(seen, maker->seen, maker->table_size / WORD_BITS * sizeof *seen);
    }
    free(maker->table);
    free(maker->seen);
    maker->table = table;
    maker->seen = seen;
    maker->table_size = size;
    return true;
}

static bool count_far(struct summary_maker *maker, uint32_t number, uint32_t calls)
{
    if (maker->far_count == maker->far_size) {
        size_t size = maker->far_size ? maker->far_size * 2 : 64;
        struct far_code *far = realloc(maker->far, size * sizeof *far);
        if (!far)
            return false;
        maker->far = far;
        maker->far_size = size;
    }
    maker->far[maker->far_count++] = (struct far_code){number, calls};
    return true;
}

/* The first record of a code in this segment, or one that does not fit into the table. */
static __attribute__((noinline)) bool count_rare(struct summary_maker *maker, uint32_t number, uint32_t calls)
{
    if (number >= TABLE_LAST)
        return count_far(maker, number, calls);
    if (number >= maker->table_size && !grow_table(maker, number))
        return false;
    maker->table[number] = SEEN + calls;
    maker->seen[number / WORD_BITS] |= 1ull << number % WORD_BITS;
    maker->seen_count++;
    return true;
}

static inline bool count(struct summary_maker *maker, uint32_t number, uint32_t calls)
{
    if (__builtin_expect(number < maker->table_size && maker->table[number], 1)) {
        maker->table[number] += calls;
        return true;
    }
    return count_rare(maker, number, calls);
}

/* ---- the list ----------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    uint32_t left = ((const struct far_code *)a)->number, right = ((const struct far_code *)b)->number;
    return (left > right) - (left < right);
}

static inline uint8_t *put_code(uint8_t *p, uint32_t *last, uint32_t number, uint64_t calls)
{
    p = wire_put_varint(p, number - *last);
    *last = number;
    return wire_put_varint(p, calls);
}

/* Writes the list, and leaves the table empty for the next segment. */
static bool write_codes(struct summary_maker *maker, struct summary *summary)
{
    size_t size = (maker->seen_count + maker->far_count) * CODE_MAX;
    uint32_t last = 0;
    uint8_t *p;

    if (size > maker->codes_size) {
        uint8_t *codes = realloc(maker->codes, size);
        if (!codes)
            return false;
        maker->codes = codes;
        maker->codes_size = size;
    }
    p = maker->codes;
    for (uint32_t word = 0; maker->seen_count; word++) {
        uint64_t bits = maker->seen[word];
        for (; bits; bits &= bits - 1) {
            uint32_t number = word * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
            p = put_code(p, &last, number, maker->table[number] - SEEN);
            maker->table[number] = 0;
            maker->seen_count--;
        }
        maker->seen[word] = 0;
    }
    if (maker->far_count > 1)
        qsort(maker->far, maker->far_count, sizeof *maker->far, by_number);
    for (size_t i = 0; i < maker->far_count;) {
        uint32_t number = maker->far[i].number;
        uint64_t calls = 0;
        for (; i < maker->far_count && maker->far[i].number == number; i++)
            calls += maker->far[i].calls;
        p = put_code(p, &last, number, calls);
    }
    maker->far_count = 0;
    summary->codes = maker->codes;
    summary->codes_size = maker->codes ? (size_t)(p - maker->codes) : 0;
    return true;
}

/* Empties what a segment that ended by lack of memory has left. */
static void forget(struct summary_maker *maker)
{
    if (maker->table_size) {
        memset(maker->table, 0, maker->table_size * sizeof *maker->table);
        memset(maker->seen, 0, maker->table_size / WORD_BITS * sizeof *maker->seen);
    }
    maker->seen_count = 0;
    maker->far_count = 0;
}

/* ---- the walk ----------------------------------------------------------------------------- */

#define KIND(kind) (1u << (kind))
#define ENTERS (KIND(EVENT_CALL) | KIND(EVENT_RESUME) | KIND(EVENT_THROW))
#define LEAVES (KIND(EVENT_RETURN) | KIND(EVENT_EXCEPTION) | KIND(EVENT_YIELD))

/* A field of `Events` that this version does not know is passed over. NULL: it cannot be. */
static const uint8_t *skip_unknown(const uint8_t *p, const uint8_t *end)
{
    uint32_t tag;
    const uint8_t *field = wire_get_tag(p, end, &tag);
    return field ? wire_skip(field, end, tag) : NULL;
}

static bool is_record(const uint8_t *p, const uint8_t *end)
{
    uint32_t tag;
    return wire_get_tag(p, end, &tag) && tag >> 3 == EVENTS_EVENT;
}

bool summary_make(struct summary_maker *maker, const uint8_t *body, size_t size, int32_t base_depth,
                  struct summary *summary)
{
    const uint8_t *p = body, *end = size ? body + size : body;
    int64_t open = base_depth, max_depth = 0;
    uint64_t max_duration = 0;
    uint32_t kinds = 0;

    while (p < end) {
        struct event event;
        uint32_t bit, enters, leaves;
        uint64_t duration;
        long length;

        if (__builtin_expect(*p != WIRE_TAG(EVENTS_EVENT, WIRE_BYTES), 0) && !is_record(p, end)) {
            if (!(p = skip_unknown(p, end)))
                break;
            continue;
        }
        length = event_head(p, (size_t)(end - p), &event);
        if (length < 0)
            break;
        p += length;

        bit = KIND(event.kind);
        enters = (bit & ENTERS) != 0;
        leaves = (bit & LEAVES) != 0;
        kinds |= bit;

        /* as segment_next has it: an event that enters no function lies in the innermost open one */
        open = event.has_depth ? event.depth : open;
        int64_t depth = open - !enters;
        max_depth = depth > max_depth ? depth : max_depth;
        open += (int64_t)enters - leaves;
        open = open > INT32_MAX ? INT32_MAX : open < INT32_MIN ? INT32_MIN : open;

        duration = event.has_elapsed ? event.elapsed : event.time;
        duration &= 0 - (uint64_t)leaves;
        max_duration = duration > max_duration ? duration : max_duration;

        if (!count(maker, event.code, event.kind == EVENT_CALL)) {
            forget(maker);
            return false;
        }
    }
    summary->max_depth = (int32_t)max_depth;
    summary->kinds = kinds;
    summary->max_duration = max_duration;
    if (!write_codes(maker, summary)) {
        forget(maker);
        return false;
    }
    return true;
}

/* ---- reading ------------------------------------------------------------------------------ */

const uint8_t *summary_next(const uint8_t *p, const uint8_t *end, struct summary_code *code, bool *bad)
{
    uint64_t step, calls;

    if (p >= end)
        return NULL;
    *bad = true;
    p = wire_get_varint(p, end, &step);
    if (!p || step > UINT32_MAX - code->number || (!step && code->number))
        return NULL;
    p = wire_get_varint(p, end, &calls);
    if (!p)
        return NULL;
    *bad = false;
    code->number += (uint32_t)step;
    code->calls = calls;
    return p;
}
