/* The levels of a stack; see levels.h. */
#include "format/levels.h"

/* The bits of word number `word` that belong to levels below `limit`. */
static uint64_t below(size_t word, int64_t limit)
{
    int64_t bits = limit - (int64_t)word * 64;
    return bits <= 0 ? 0 : bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

/* The levels of word number `word`; those that `open` leaves out are 0. */
static uint64_t open_word(const uint8_t *open, size_t size, size_t word)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < 8 && 1 + word * 8 + i < size; i++)
        bits |= (uint64_t)open[1 + word * 8 + i] << 8 * i;
    return bits;
}

static int64_t within(int64_t open) { return open < 0 ? 0 : open > LEVELS_MAX ? LEVELS_MAX : open; }

static uint32_t ones(uint64_t bits) { return (uint32_t)__builtin_popcountll(bits); }

/* Sets the numbers of own and near levels. */
static void recount(struct levels *levels)
{
    int64_t open = within(levels->open);
    uint64_t before = 0; /* the word before */

    levels->own = levels->near = 0;
    for (size_t word = 0; (int64_t)word * 64 < open; word++) {
        uint64_t own = levels->bits[word] & below(word, open);
        levels->own += ones(own);
        levels->near += ones((own | own << 1 | before >> 63) & below(word, open));
        before = own;
    }
}

void levels_begin(struct levels *levels, const uint8_t *open, size_t size, int32_t base_depth)
{
    levels->open = base_depth;
    levels->after_own = open[0] & OPEN_AFTER_OWN;
    levels->after_near = open[0] & OPEN_AFTER_NEAR;
    for (size_t word = 0; (int64_t)word * 64 < within(base_depth); word++)
        levels->bits[word] = open_word(open, size, word);
    recount(levels);
}

void levels_jump(struct levels *levels, int64_t open)
{
    int64_t from = within(levels->open), to = within(open);

    for (size_t word = (size_t)from / 64; (int64_t)word * 64 < to; word++)
        levels->bits[word] &= below(word, from);
    levels->open = open;
    recount(levels);
}

void open_bounds(const uint8_t *open, size_t size, int64_t low, int64_t high, bool has_own,
                 struct open_bounds *bounds)
{
    uint64_t before = 0;

    low = low < 0 ? 0 : low;
    high = high < low ? low : high;
    *bounds = (struct open_bounds){.may_be_near = has_own};
    /* and a word more: a near level lies above the last own one */
    for (size_t word = 0; word * 8 < size + 7 && word < LEVELS_MAX / 64; word++) {
        uint64_t own = open_word(open, size, word), near = own | own << 1 | before >> 63;
        bounds->own_low += ones(own & below(word, low));
        bounds->own_high += ones(own & below(word, high));
        bounds->near_low += ones(near & below(word, low));
        bounds->near_high += ones(near & below(word, high));
        bounds->may_be_near |= (own & below(word, high) & ~below(word, low - 1)) != 0;
        before = own;
    }
    if (has_own) {
        bounds->own_high = bounds->own_low + (high - low);
        bounds->near_high = bounds->near_low + (high - low);
    }
}
