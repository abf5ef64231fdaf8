/* The variables of a function; see frame_variables.h. */
#include "query/frame_variables.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/map.h"
#include "format/levels.h"
#include "query/arguments.h"

/* A record that tells variables of a call: of the call, or of a line. */
struct told {
    const uint8_t *record;
    uint32_t index;
    uint32_t before; /* of the same call: its place in `told`, from 1; 0: none is known */
};

struct walk {
    struct told *told;
    size_t told_count, told_capacity;
    uint32_t *levels; /* by depth: the open call's last one, as `before` */
    size_t level_capacity, level_count;
    struct map suspended; /* by number of a generator: the same, plus 1 */
};

static uint32_t *level_at(struct walk *walk, int32_t depth)
{
    size_t count = (size_t)depth + 1;

    if (count > walk->level_count) {
        if (!array_reserve(&walk->levels, &walk->level_capacity, count, sizeof *walk->levels))
            return NULL;
        memset(walk->levels + walk->level_count, 0, (count - walk->level_count) * sizeof *walk->levels);
        walk->level_count = count;
    }
    return &walk->levels[depth];
}

static bool tell(struct walk *walk, uint32_t *level, const struct segment_event *event)
{
    if (!array_reserve(&walk->told, &walk->told_capacity, walk->told_count + 1, sizeof *walk->told))
        return false;
    walk->told[walk->told_count++] = (struct told){event->record, event->index, *level};
    *level = (uint32_t)walk->told_count;
    return true;
}

/* What a generator has told; a walk that began later, or a recording of before, does not know. */
static uint32_t resumed(const struct walk *walk, uint32_t generator)
{
    uint64_t suspended = generator ? map_get(&walk->suspended, generator) : 0;
    return suspended ? (uint32_t)(suspended - 1) : 0;
}

/* Takes an event; *last is what its call has told up to it. False: no memory. */
static bool step(struct walk *walk, const struct segment_event *event, uint32_t *last)
{
    uint32_t *level;

    *last = 0;
    if (event->depth >= LEVELS_MAX)
        return true; /* calls as deep have no variables */
    if (!(level = level_at(walk, event->depth)))
        return false;
    switch (event->event.kind) {
    case EVENT_CALL:
        *level = 0;
        if (!tell(walk, level, event))
            return false;
        break;
    case EVENT_RESUME:
    case EVENT_THROW:
        *level = resumed(walk, event->event.generator);
        break;
    case EVENT_AT_LINE:
        if (!tell(walk, level, event))
            return false;
        break;
    case EVENT_LOST: /* of no call */
        return true;
    default:
        break;
    }
    *last = *level;
    if (event->event.kind == EVENT_YIELD && event->event.generator) {
        uint64_t *suspended = map_put(&walk->suspended, event->event.generator, 1);
        if (!suspended)
            return false;
        *suspended = (uint64_t)*level + 1;
    }
    if (EVENT_LEAVES >> event->event.kind & 1)
        *level = 0;
    return true;
}

/* The functions from level `open` up to `depth` are not known. */
static void forget_levels(struct walk *walk, int64_t open, int64_t depth)
{
    int64_t from = open < 0 ? 0 : open, count = (int64_t)walk->level_count, to = depth < count ? depth : count;
    if (from < to)
        memset(walk->levels + from, 0, (size_t)(to - from) * sizeof *walk->levels);
}

/* Walks up to the event; *last as in `step`. *found: it is there. */
static bool walk_to(struct walk *walk, struct segment_walk *place, uint32_t index, struct segment_event *event,
                    uint32_t *last, bool *found)
{
    *found = false;
    for (;;) {
        int32_t open = place->open;
        if (segment_head(place, event) <= 0)
            return true;
        if (event->event.has_depth) /* what lies above is not what lay there */
            forget_levels(walk, open, event->event.depth);
        if (event_is_known(event->event.kind) && !step(walk, event, last))
            return false;
        if (event->index == index) {
            *found = true;
            return true;
        }
    }
}

/* ---- what the records tell ---------------------------------------------------------------- */

struct found {
    struct frame_variable *all;
    size_t count, capacity;
    uint8_t *seen; /* by number: what comes is older */
    size_t seen_capacity, seen_count;
};

static bool see(struct found *found, uint32_t number, bool *is_new)
{
    if (number >= found->seen_count) {
        if (!array_reserve(&found->seen, &found->seen_capacity, (size_t)number + 1, 1))
            return false;
        memset(found->seen + found->seen_count, 0, (size_t)number + 1 - found->seen_count);
        found->seen_count = (size_t)number + 1;
    }
    *is_new = !found->seen[number];
    found->seen[number] = 1;
    return true;
}

static bool add(struct found *found, const struct run_code *code, uint32_t number, struct string name,
                const struct value *value, uint32_t set, bool known)
{
    bool is_new;

    if (number > UINT16_MAX)
        return true; /* no code has so many */
    if (!see(found, number, &is_new))
        return false;
    if (!is_new || (value->content == VALUE_CONSTANT && value->constant == CONSTANT_DELETED))
        return true;
    if (!array_reserve(&found->all, &found->capacity, found->count + 1, sizeof *found->all))
        return false;
    if (number < code->variable_count)
        name = code->variables[number];
    found->all[found->count++] =
        (struct frame_variable){.number = number, .name = name, .value = *value, .set = set, .known = known};
    return true;
}

/* The place of an argument among the variables. */
static uint32_t number_of(const struct run_code *code, struct string name, uint32_t position)
{
    for (uint32_t number = 0; number < code->variable_count; number++)
        if (code->variables[number].size == name.size &&
            !memcmp(code->variables[number].text, name.text, name.size))
            return number;
    return code->variable_count + position;
}

static bool add_call(struct found *found, const struct run_code *code, const struct told *told,
                     const struct event *event)
{
    struct argument_walk walk = {0};
    struct argument argument;

    while (argument_next(&walk, event, code, &argument)) {
        uint32_t number = number_of(code, argument.name, argument.position);
        bool is_made = argument.name.text == walk.number;
        if (!add(found, code, number, is_made ? (struct string){NULL, 0} : argument.name, &argument.value,
                 told->index, true))
            return false;
    }
    return true;
}

static bool add_line(struct found *found, const struct run_code *code, const struct told *told,
                     const struct event *event, bool *has_all)
{
    struct event_variables variables;
    const uint8_t *values = NULL;
    struct value value;
    uint32_t number;

    event_variables(event, &variables);
    *has_all = variables.changed < event->value_count;
    for (uint32_t i = 0; event_variable(&variables, &number) && event_value(event, &values, &value); i++)
        if (!add(found, code, number, (struct string){NULL, 0}, &value, told->index, i < variables.changed))
            return false;
    return true;
}

static bool collect(const struct walk *walk, const uint8_t *end, const struct run_definitions *run, uint32_t code,
                    uint32_t last, struct found *found)
{
    bool has_all = false;

    while (last) {
        const struct told *told = &walk->told[last - 1];
        struct event event;
        if (event_decode(told->record, (size_t)(end - told->record), &event) < 0 || event.code != code)
            break;
        if (has_all && event.kind != EVENT_CALL)
            break; /* the first line has all but the arguments */
        last = told->before;
        bool done = event.kind == EVENT_CALL
                        ? add_call(found, run_code_find(run, code), told, &event)
                        : add_line(found, run_code_find(run, code), told, &event, &has_all);
        if (!done)
            return false;
    }
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint32_t left = ((const struct frame_variable *)a)->number;
    uint32_t right = ((const struct frame_variable *)b)->number;
    return (left > right) - (left < right);
}

bool frame_variables(const uint8_t *body, size_t size, uint64_t base_time, int32_t base_depth,
                     const struct run_definitions *run, uint32_t index, struct frame_variable **all,
                     size_t *count)
{
    struct walk walk = {0};
    struct segment_walk place;
    struct segment_event event;
    struct found found = {0};
    uint32_t last = 0;
    bool is_there, done;

    segment_open(&place, body, size, base_time, base_depth);
    done = walk_to(&walk, &place, index, &event, &last, &is_there);
    if (done && is_there)
        done = collect(&walk, body + size, run, event.event.code, last, &found);
    free(walk.told);
    free(walk.levels);
    map_free(&walk.suspended);
    free(found.seen);
    if (!done) {
        free(found.all);
        return false;
    }
    if (found.count > 1)
        qsort(found.all, found.count, sizeof *found.all, by_number);
    *all = found.all;
    *count = found.count;
    return true;
}
