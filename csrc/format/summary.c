/* Makes and reads the summary of a segment; see summary.h. The dumper makes one for each chunk that
 * it stores. So this file has a loop of its own, which takes some 60 % of the time of
 * segment_head. */
#include "format/summary.h"

#include <stdlib.h>

#include "common/array.h"

/* Codes are numbered from 1 in the order in which they are first seen, so a table counts them. A
 * number that no program reaches (the record is nonsense) goes into a list instead. */
#define TABLE_FIRST (1u << 12) /* entries */
#define TABLE_LAST (1u << 22)
/* in a table's entry, above the number of calls; a chunk has fewer records */
#define SEEN (1u << 31)
#define WORD_BITS 64u
#define CODE_MAX 10     /* bytes of a code in the list: two varints of 32 bits */

struct far_code {
    uint32_t number, calls;
};

struct summary_maker {
    uint32_t *table; /* by code number; all 0 between two segments */
    uint64_t *seen;  /* a bit for each entry that is not 0, to find them in order */
    uint32_t table_size;
    uint32_t seen_count;
    struct far_code *far; /* one for each record of a far code, until they are sorted */
    size_t far_count, far_size;
    uint8_t *codes;
    size_t codes_size;
    uint32_t *levels; /* the code object that is open at each level, or KEPT */
    uint64_t *own;    /* a bit for each code number */
    uint32_t own_size; /* numbers */
    uint8_t open[OPEN_MAX];
};

#define KEPT UINT32_MAX /* the function that was open where the segment began */

struct summary_maker *summary_maker_new(void)
{
    struct summary_maker *maker = calloc(1, sizeof *maker);
    if (maker && !(maker->levels = calloc(LEVELS_MAX, sizeof *maker->levels))) {
        free(maker);
        return NULL;
    }
    return maker;
}

void summary_maker_free(struct summary_maker *maker)
{
    if (!maker)
        return;
    free(maker->table);
    free(maker->seen);
    free(maker->far);
    free(maker->codes);
    free(maker->levels);
    free(maker->own);
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
    if (!array_reserve(&maker->far, &maker->far_size, maker->far_count + 1, sizeof *maker->far))
        return false;
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

    if (!array_reserve(&maker->codes, &maker->codes_size, size, 1))
        return false;
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

/* ---- open levels -------------------------------------------------------------------------- */

bool summary_own(struct summary_maker *maker, uint32_t number, bool own)
{
    if (number >= maker->own_size) {
        uint32_t size = maker->own_size ? maker->own_size : TABLE_FIRST;
        if (!own || number >= TABLE_LAST)
            return true;
        while (size <= number)
            size *= 2;
        uint64_t *larger = realloc(maker->own, size / WORD_BITS * sizeof *larger);
        if (!larger)
            return false;
        memset(larger + maker->own_size / WORD_BITS, 0,
               (size - maker->own_size) / WORD_BITS * sizeof *larger);
        maker->own = larger;
        maker->own_size = size;
    }
    uint64_t bit = 1ull << number % WORD_BITS, *word = &maker->own[number / WORD_BITS];
    *word = own ? *word | bit : *word & ~bit;
    return true;
}

static bool is_own(const struct summary_maker *maker, uint32_t number)
{
    return number < maker->own_size && maker->own[number / WORD_BITS] >> number % WORD_BITS & 1;
}

static int64_t within_levels(int64_t open) { return open < 0 ? 0 : open > LEVELS_MAX ? LEVELS_MAX : open; }

static void keep_levels(struct summary_maker *maker, int64_t open)
{
    memset(maker->levels, 0xff, (size_t)within_levels(open) * sizeof *maker->levels);
}

/* The functions from level `open` up to `depth` are not known. */
static void forget_levels(struct summary_maker *maker, int64_t open, int64_t depth)
{
    int64_t from = within_levels(open), to = within_levels(depth);
    if (from < to)
        memset(maker->levels + from, 0, (size_t)(to - from) * sizeof *maker->levels);
}

/* The bit of a level in `open`, which is what was open where the segment began. */
static bool level_is_own(const struct summary_maker *maker, const uint8_t *open, size_t open_size,
                         int64_t level)
{
    if (level < 0 || level >= LEVELS_MAX)
        return false;
    if (maker->levels[level] != KEPT)
        return is_own(maker, maker->levels[level]);
    return 1 + (size_t)level / 8 < open_size && open[1 + level / 8] >> level % 8 & 1;
}

/* The last event that is known, and the open calls before it. */
struct last {
    const uint8_t *record; /* NULL: `flags` are known already */
    int64_t open;
    uint8_t flags; /* of enum open_flag */
};

static uint8_t open_flags(const struct summary_maker *maker, const uint8_t *open, size_t open_size,
                          const struct last *last, const uint8_t *end)
{
    struct event event;

    if (!last->record || event_head(last->record, (size_t)(end - last->record), &event) < 0)
        return last->flags;
    int64_t level = last->open - !(EVENT_ENTERS >> event.kind & 1);
    if (event.kind == EVENT_LOST || is_own(maker, event.code))
        return OPEN_AFTER_OWN | OPEN_AFTER_NEAR;
    return level_is_own(maker, open, open_size, level - 1) ? OPEN_AFTER_NEAR : 0;
}

/* Writes what is open behind the segment. */
static void write_open(struct summary_maker *maker, const uint8_t *open, size_t open_size, int64_t depth,
                       uint8_t flags, struct summary *summary)
{
    size_t size = 1;
    uint8_t bits = 0;

    for (int64_t level = 0; level < within_levels(depth); level++) {
        bits |= (uint8_t)(level_is_own(maker, open, open_size, level) << level % 8);
        if (level % 8 == 7 || level + 1 == within_levels(depth)) {
            maker->open[1 + level / 8] = bits;
            size = bits ? 2 + (size_t)level / 8 : size;
            bits = 0;
        }
    }
    maker->open[0] = flags;
    summary->open = maker->open;
    summary->open_size = size;
}

/* ---- the walk ----------------------------------------------------------------------------- */

/* The effect of an event on the open calls, in bits of summary.kinds that no kind has. */
enum motion { ENTERS = 1 << 10, LEAVES = 1 << 11 };
#define KINDS (EVENT_ANY | SUMMARY_TASKS | SUMMARY_CPUS)

#define MOVES(kind, motion) [WIRE_TAG(kind, WIRE_VARINT)] = 1 << kind | (motion)
static const uint32_t motions[256] = { /* by a record's first tag; 0: not one with a code */
    MOVES(EVENT_CALL, ENTERS),   MOVES(EVENT_RETURN, LEAVES), MOVES(EVENT_EXCEPTION, LEAVES),
    MOVES(EVENT_RESUME, ENTERS), MOVES(EVENT_YIELD, LEAVES),  MOVES(EVENT_THROW, ENTERS),
    MOVES(EVENT_RAISE, 0),       MOVES(EVENT_LOG, 0),         MOVES(EVENT_AT_LINE, 0),
    MOVES(EVENT_HAPPENED, 0),
};

/* A varint of up to four bytes as it stands, in a word: of two numbers the larger one has the
 * larger word, so that they can be compared without being put together. */
#define WORD_TOPS 0x80808080u

static inline uint32_t word_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t word_of(uint64_t number)
{
    uint8_t bytes[WIRE_VARINT_MAX] = {0};
    wire_put_varint(bytes, number);
    return word_at(bytes); /* of a longer varint the start, which is larger than every word */
}

static uint64_t word_number(uint32_t word)
{
    return (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000) | (word >> 3 & 0xfe00000);
}

/* Reads the word at `p`; the size of the varint, or 0 if it is longer than a word. */
static inline size_t get_word(const uint8_t *p, uint32_t *word)
{
    /* the lowest bit of `ends` is in the last byte of the first varint */
    uint32_t bytes = word_at(p), ends = ~bytes & WORD_TOPS;
    *word = bytes & (ends ^ (ends - 1));
    return ends ? ((size_t)__builtin_ctz(ends) + 1) / 8 : 0;
}

/* The first fields of a record. */
struct head {
    const uint8_t *next;
    uint32_t motion, code;
    uint32_t span; /* a word: the field elapsed, or time if that is absent */
};

/* A record as nearly all are: the fields in the order in which the hook writes them, each of a
 * few bytes, no depth, and more of the body behind it. The time's size is as good as
 * random, so no branch asks for it. False: it is not such a record. */
#define USUAL_MAX 23 /* bytes that are looked at */
static inline __attribute__((always_inline)) bool read_usual(const uint8_t *p, const uint8_t *end,
                                                             struct head *head)
{
    size_t length, size;

    if (end - p < USUAL_MAX || p[0] != WIRE_TAG(EVENTS_EVENT, WIRE_BYTES))
        return false;
    length = p[1];
    p += 2;
    if (length >= 0x80) {
        length = (length & 0x7f) | (size_t)*p << 7;
        if (*p++ >= 0x80)
            return false;
    }
    if (length > (size_t)(end - p))
        return false;
    head->next = p + length;

    head->motion = motions[p[0]];
    if (p[0] >= 0x80 && *++p != 1) /* a kind from 16 on, whose tag has a second byte */
        return false;
    p++;
    head->code = *p++;
    if (head->code >= 0x80) {
        head->code = (head->code & 0x7f) | (uint32_t)*p << 7;
        if (*p++ >= 0x80)
            return false;
    }
    if (!head->motion || *p != WIRE_TAG(EVENT_TIME, WIRE_VARINT) || !(size = get_word(p + 1, &head->span)))
        return false;
    p += 1 + size;
    if (*p == WIRE_TAG(EVENT_ELAPSED, WIRE_VARINT)) {
        if (!(size = get_word(p + 1, &head->span)))
            return false;
        p += 1 + size;
    }
    if (*p == WIRE_TAG(EVENT_LINE, WIRE_VARINT)) {
        uint32_t line;
        if (!(size = get_word(p + 1, &line)))
            return false;
        p += 1 + size;
    }
    return p == head->next || (p < head->next && *p == WIRE_TAG(EVENT_VALUE, WIRE_BYTES));
}

struct tally {
    int64_t open, max_open;
    uint64_t top;     /* levels up to here are in use */
    uint64_t max_duration;
    uint32_t longest; /* the word of max_duration */
    uint32_t kinds; /* and motions */
    uint32_t events;
};

/* Takes note of the number of open calls; true: it is the number of a level. */
static inline bool reach(struct tally *tally)
{
    if (tally->open > tally->max_open)
        tally->max_open = tally->open;
    if ((uint64_t)tally->open >= LEVELS_MAX)
        return false;
    if ((uint64_t)tally->open > tally->top)
        tally->top = (uint64_t)tally->open;
    return true;
}

static inline __attribute__((always_inline)) void move(struct tally *tally, uint32_t *levels, uint32_t motion,
                                                       uint32_t code)
{
    /* the level above the open calls: of an event that enters no function it is not in use */
    if (__builtin_expect((uint64_t)tally->open <= tally->top, 1) || reach(tally))
        levels[tally->open] = code;
    tally->open += (int64_t)(motion / ENTERS & 1) - (motion / LEAVES & 1);
    tally->kinds |= motion;
    tally->events++;
}

static inline void take_duration(struct tally *tally, uint64_t duration)
{
    if (duration > tally->max_duration) {
        tally->max_duration = duration;
        tally->longest = word_of(duration);
    }
}

static bool is_record(const uint8_t *p, const uint8_t *end)
{
    uint32_t tag;
    return wire_get_tag(p, end, &tag) && tag >> 3 == EVENTS_EVENT;
}

/* Passes over a field of `Events` that is no record; *kinds gets the bits of a task or a processor.
 * NULL: it cannot be read. */
static const uint8_t *pass_between(const uint8_t *p, const uint8_t *end, uint32_t *kinds)
{
    uint32_t tag;
    uint64_t cpu = 0;

    if (!(p = wire_get_tag(p, end, &tag)))
        return NULL;
    if (tag == WIRE_TAG(EVENTS_TASK, WIRE_BYTES))
        *kinds |= p < end && *p ? SUMMARY_TASKS : 0;
    if (tag != WIRE_TAG(EVENTS_CPU, WIRE_VARINT))
        return wire_skip(p, end, tag);
    p = wire_get_varint(p, end, &cpu);
    *kinds |= cpu ? SUMMARY_CPUS : 0;
    return cpu <= INT32_MAX ? p : NULL;
}

/* Any record. Returns the position behind it; NULL if it cannot be read. */
static const uint8_t *read_any(const uint8_t *p, const uint8_t *end, struct event *event)
{
    long size = event_head(p, (size_t)(end - p), event);
    return size < 0 ? NULL : p + size;
}

bool summary_make(struct summary_maker *maker, const uint8_t *body, size_t size, int32_t base_depth,
                  const uint8_t *open, size_t open_size, struct summary *summary)
{
    const uint8_t *p = body, *end = size ? body + size : body;
    struct tally tally = {.open = base_depth};
    struct last last = {.flags = open[0]};
    uint32_t *levels = maker->levels;
    bool memory = true;

    keep_levels(maker, base_depth);
    while (p < end && memory) {
        struct head head;
        if (read_usual(p, end, &head)) {
            last = (struct last){p, tally.open, 0};
            p = head.next;
            move(&tally, levels, head.motion, head.code);
            if (__builtin_expect(head.span > tally.longest, 0) && head.motion & LEAVES)
                take_duration(&tally, word_number(head.span));
            memory = count(maker, head.code, head.motion >> EVENT_CALL & 1);
        } else if (is_record(p, end)) {
            const uint8_t *record = p;
            struct event event;
            uint32_t motion;

            if (!(p = read_any(p, end, &event)))
                break;
            motion = motions[WIRE_TAG(event.kind, WIRE_VARINT)] | 1u << event.kind;
            if (event.has_depth) {
                if (last.record && !event_is_known(event.kind)) /* while its caller is there */
                    last = (struct last){.flags = open_flags(maker, open, open_size, &last, end)};
                if (tally.events)
                    reach(&tally);
                forget_levels(maker, tally.open, event.depth);
                tally.open = event.depth;
            }
            if (event_is_known(event.kind))
                last = (struct last){record, tally.open, 0};
            move(&tally, levels, motion, event.code == KEPT ? 0 : event.code); /* neither is own */
            if (motion & LEAVES)
                take_duration(&tally, event.has_elapsed ? event.elapsed : event.time);
            memory = count(maker, event.code, motion >> EVENT_CALL & 1);
        } else {
            if (!(p = pass_between(p, end, &tally.kinds)))
                break;
        }
    }
    if (tally.events)
        reach(&tally);
    /* An event lies in the innermost call that is open before it, or behind it. segment_next ends
     * at these bounds. A body is too short to get below the lower one by more than it could come up
     * again. */
    int64_t max_depth = tally.max_open ? tally.max_open - 1 : 0;
    summary->max_depth = (int32_t)(max_depth > INT32_MAX ? INT32_MAX : max_depth);
    summary->kinds = tally.kinds & KINDS;
    summary->max_duration = tally.max_duration;
    summary->events = tally.events;
    write_open(maker, open, open_size, tally.open, open_flags(maker, open, open_size, &last, end), summary);
    if (memory && write_codes(maker, summary))
        return true;
    forget(maker);
    return false;
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
