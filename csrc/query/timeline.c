/* The segments of a run, in order of time; see timeline.h. */
#include "query/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "format/summary.h"

struct place {
    uint32_t stream, position;
};

static int by_stream(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

bool timeline_link(struct timeline *timeline)
{
    struct timeline_segment *segments = timeline->segments;
    struct place *places = malloc((timeline->count + 1) * sizeof *places);
    uint64_t latest = 0;

    if (!places)
        return false;
    for (uint32_t i = 0; i < timeline->count; i++) {
        places[i] = (struct place){segments[i].stream, i};
        latest = segments[i].end > latest ? segments[i].end : latest;
        segments[i].latest = latest;
        segments[i].before = segments[i].after = TIMELINE_NONE;
    }
    qsort(places, timeline->count, sizeof *places, by_stream);
    for (uint32_t i = 1; i < timeline->count; i++)
        if (places[i].stream == places[i - 1].stream) {
            segments[places[i].position].before = places[i - 1].position;
            segments[places[i - 1].position].after = places[i].position;
        }
    free(places);
    return true;
}

/* The first segment that starts at `start` or later. */
static uint32_t find_start(const struct timeline *timeline, uint64_t start)
{
    uint32_t low = 0, high = timeline->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (timeline->segments[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t timeline_latest(const struct timeline *timeline, uint64_t time)
{
    uint32_t low = 0, high = timeline->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (timeline->segments[middle].latest < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t timeline_find(const struct timeline *timeline, const struct scan_segment *segment)
{
    for (uint32_t i = find_start(timeline, segment->base_time); i < timeline->count; i++)
        if (timeline->segments[i].id == segment->id)
            return i;
        else if (timeline->segments[i].start != segment->base_time)
            break;
    return TIMELINE_NONE;
}

uint32_t timeline_at(const struct timeline *timeline, uint32_t stream, uint64_t time)
{
    uint32_t i = time < UINT64_MAX ? find_start(timeline, time + 1) : timeline->count;
    while (i-- > 0)
        if (timeline->segments[i].stream == stream)
            return i;
    return TIMELINE_NONE;
}

/* ---- where functions are ------------------------------------------------------------------ */

static bool make_posting(const struct timeline *timeline, struct posting *posting)
{
    size_t capacity = 0;

    for (uint32_t i = 0; i < timeline->count; i++) {
        const struct timeline_segment *segment = &timeline->segments[i];
        const uint8_t *p = segment->codes;
        struct summary_code summary = {0};
        bool bad = false;
        while (p && (p = summary_next(p, segment->codes_end, &summary, &bad)) &&
               summary.number < posting->code)
            continue;
        if (!bad && (!p || summary.number != posting->code))
            continue;
        if (!array_reserve(&posting->positions, &capacity, posting->count + 1, sizeof *posting->positions))
            return false;
        posting->positions[posting->count++] = i;
    }
    return true;
}

const struct posting *postings_get(struct postings *postings, const struct timeline *timeline, uint32_t code)
{
    size_t low = 0, high = postings->count;
    struct posting posting = {.code = code};

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (postings->all[middle].code < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < postings->count && postings->all[low].code == code)
        return &postings->all[low];
    if (!array_reserve(&postings->all, &postings->capacity, postings->count + 1, sizeof posting) ||
        !make_posting(timeline, &posting)) {
        free(posting.positions);
        return NULL;
    }
    memmove(&postings->all[low + 1], &postings->all[low], (postings->count++ - low) * sizeof posting);
    postings->all[low] = posting;
    return &postings->all[low];
}

void postings_free(struct postings *postings)
{
    for (size_t i = 0; i < postings->count; i++)
        free(postings->all[i].positions);
    free(postings->all);
}
