/* Pages of the kernel's ring buffer; see pages.h. */
#include "kernel/pages.h"

#include "kernel/format.h"

#include <string.h>

enum { TYPE_BITS = 5, DELTA_SHIFT = 27, PADDING = 29, TIME_EXTEND = 30, TIME_STAMP = 31 };
#define MISSED_EVENTS (1u << 31)
#define MISSED_STORED (1u << 30)
#define SIZE_MASK (MISSED_STORED - 1)
#define TIME_TOP (UINT64_C(0xf8) << 56) /* not in an absolute time stamp */

/* The offset and size of a line's field by its name. */
static bool find_field(const char *text, size_t size, const char *name, uint32_t *offset, uint32_t *length)
{
    /* the file has the form of an event's fields, without its head */
    struct kernel_format format;
    char whole[2048];
    static const char head[] = "name: page\nID: 0\nfield: int common_pid; offset:0; size:4; signed:1;\n";

    if (size > sizeof whole - sizeof head)
        return false;
    memcpy(whole, head, sizeof head - 1);
    memcpy(whole + sizeof head - 1, text, size);
    if (!kernel_format_parse(whole, sizeof head - 1 + size, &format))
        return false;
    const struct kernel_field *field = kernel_format_field(&format, name);
    if (!field)
        return false;
    *offset = field->offset;
    *length = field->size;
    return true;
}

bool kernel_layout_parse(const char *text, size_t size, struct kernel_layout *layout)
{
    uint32_t room;
    return find_field(text, size, "commit", &layout->commit_offset, &layout->commit_size) &&
           find_field(text, size, "data", &layout->data_offset, &room) &&
           (layout->page_size = layout->data_offset + room) <= KERNEL_PAGE_MAX &&
           (layout->commit_size == 4 || layout->commit_size == 8) && layout->commit_offset >= 8 &&
           layout->data_offset >= layout->commit_offset + layout->commit_size;
}

bool kernel_page_open(struct kernel_page *page, const struct kernel_layout *layout, const uint8_t *data,
                      size_t size)
{
    uint32_t commit;

    if (size < layout->data_offset)
        return false;
    memcpy(&page->time, data, sizeof page->time);
    memcpy(&commit, data + layout->commit_offset, sizeof commit);
    size_t used = commit & SIZE_MASK, room = size - layout->data_offset;
    if (used > room)
        return false;
    page->next = data + layout->data_offset;
    page->end = page->next + used;
    page->has_missed = commit & MISSED_EVENTS;
    page->missed = 0;
    if (page->has_missed && commit & MISSED_STORED) {
        if (room - used < sizeof page->missed)
            return false;
        memcpy(&page->missed, page->end, sizeof page->missed);
    }
    return true;
}

static uint32_t word_at(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

int kernel_page_next(struct kernel_page *page, struct kernel_event *event)
{
    while (page->end - page->next >= 4) {
        const uint8_t *p = page->next;
        size_t left = (size_t)(page->end - p), size;
        uint32_t type = word_at(p) & ((1u << TYPE_BITS) - 1);
        uint64_t delta = word_at(p) >> TYPE_BITS;

        if ((type == 0 || type >= PADDING) && left < 8 && !(type == PADDING && !delta))
            return -1;
        switch (type) {
        case PADDING:
            if (!delta) {
                page->next = page->end;
                return 0;
            }
            size = (size_t)word_at(p + 4) + 4;
            if (size > left || size < 8)
                return -1;
            page->time += delta;
            page->next = p + size;
            continue;
        case TIME_EXTEND:
            page->time += ((uint64_t)word_at(p + 4) << DELTA_SHIFT) + delta;
            page->next = p + 8;
            continue;
        case TIME_STAMP:
            page->time = (page->time & TIME_TOP) | ((((uint64_t)word_at(p + 4) << DELTA_SHIFT) + delta) & ~TIME_TOP);
            page->next = p + 8;
            continue;
        case 0:
            size = word_at(p + 4);
            if (size < 4 || size > left - 4)
                return -1;
            event->data = p + 8;
            event->size = size - 4;
            page->next = p + 4 + size;
            break;
        default:
            size = type * 4;
            if (size > left - 4)
                return -1;
            event->data = p + 4;
            event->size = size;
            page->next = p + 4 + size;
            break;
        }
        page->time += delta;
        event->time = page->time;
        return 1;
    }
    return 0;
}
