/* A segment's events in batches; see batch.h. */
#include "batch.h"

#include "text.h"

static const char *type_name(void *context, uint32_t number)
{
    const struct batch_types *types = context;
    uint32_t low = 0, high = types->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (types->numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < types->count && types->numbers[low] == number ? types->names[low] : NULL;
}

/* Takes the text just written behind the batch's text; false where it did not fit. */
static bool take(struct batch *batch, size_t size, struct batch_text *piece)
{
    if (size > batch->text_capacity - batch->text_size)
        return false;
    piece->start = batch->text_size;
    piece->size = (uint32_t)size;
    batch->text_size += (uint32_t)size;
    return true;
}

typedef size_t writer(const struct value *, const struct text_names *, char *, size_t);

static bool add_text(struct batch *batch, writer *write, const struct value *value, struct batch_text *piece)
{
    struct text_names names = {type_name, &batch->types};
    char *end = batch->text + batch->text_size;
    return take(batch, write(value, &names, end, batch->text_capacity - batch->text_size), piece);
}

static bool add_value(struct batch *batch, const struct value *value, const uint8_t *name, size_t name_size)
{
    struct batch_value *row = &batch->values[batch->value_count];
    char *end = batch->text + batch->text_size;

    if (batch->value_count == batch->value_capacity)
        return false;
    if (!take(batch, text_plain(name, name_size, end, batch->text_capacity - batch->text_size), &row->name)
        || !add_text(batch, text_value, value, &row->value) || !add_text(batch, text_type, value, &row->type))
        return false;
    row->bare = row->value;
    if (value->content == VALUE_TEXT && !add_text(batch, text_bare, value, &row->bare))
        return false;
    batch->value_count++;
    return true;
}

static bool add_values(struct batch *batch, const struct event *event)
{
    const uint8_t *cursor = NULL, *name_cursor = NULL, *name;
    size_t name_size;
    struct value value;

    for (uint32_t i = 0; event_value(event, &cursor, &value); i++) {
        /* names belong to the values after the first */
        if (!(i && i <= event->name_count && event_name(event, &name_cursor, &name, &name_size)))
            name_size = 0;
        if (!add_value(batch, &value, name_size ? name : NULL, name_size))
            return false;
    }
    return true;
}

static bool add_event(struct batch *batch, const struct segment_event *event)
{
    const struct segment_clock *clock = &batch->clock;
    uint32_t first_value = batch->value_count, text_size = batch->text_size;

    if (batch->with_values && !add_values(batch, &event->event)) {
        batch->value_count = first_value;
        batch->text_size = text_size;
        return false;
    }
    batch->events[batch->event_count++] = (struct batch_event){
        .index = event->index,
        .kind = event->event.kind,
        .code = event->event.code,
        .line = event->event.line,
        .time = segment_clock_ns(clock, event->time),
        .duration = event->has_duration ? segment_duration_ns(clock, event->duration) : -1,
        .count = event->event.count,
        .first_value = first_value,
        .value_count = batch->value_count - first_value,
        .depth = event->depth,
    };
    return true;
}

int batch_next(struct segment_walk *walk, struct batch *batch)
{
    batch->event_count = batch->value_count = batch->text_size = 0;
    while (batch->event_count < batch->event_capacity) {
        struct segment_walk before = *walk;
        struct segment_event event;
        int answer = segment_next(walk, &event);

        if (!answer)
            return (int)batch->event_count;
        if (answer < 0) {
            if (!batch->event_count)
                return answer;
        } else if (add_event(batch, &event)) {
            continue;
        } else if (!batch->event_count) {
            *walk = before;
            return BATCH_TOO_SMALL;
        }
        *walk = before; /* tried again with the next batch */
        return (int)batch->event_count;
    }
    return batch->event_count ? (int)batch->event_count : BATCH_TOO_SMALL;
}
