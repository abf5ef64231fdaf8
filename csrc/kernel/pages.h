/* A page of the kernel's ring buffer, as per_cpu/cpuN/trace_pipe_raw gives it:
 *
 *   timestamp (8) | commit (8, or 4 on 32 bits) | data of `commit` bytes
 *
 * The low bits of `commit` are the size of the data, and two flags above them say that events were
 * lost before this page, and that their number stands behind the data. An event begins with a word:
 * type_len in its lowest 5 bits, time_delta in the other 27.
 *
 *   type_len 1 to 28   data of type_len * 4 bytes follows
 *   0                  the next word is the size of the data, itself included
 *   29                 padding: with a delta of 0 to the end of the page, else of so many bytes
 *   30                 the next word is the time that has passed, << 27, added to the delta
 *   31                 the same word, but the time is absolute (its top 5 bits are those of before)
 *
 * No Python, no allocation. Little-endian machines: the kernel's bit fields lie the other way on
 * others.
 */
#ifndef PYTRACE_KERNEL_PAGES_H
#define PYTRACE_KERNEL_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_PAGE_MAX (1u << 17) /* bytes: larger ones are refused */

/* From events/header_page. */
struct kernel_layout {
    uint32_t commit_offset, commit_size, data_offset;
    uint32_t page_size;
};

/* False: the text is no header_page. */
bool kernel_layout_parse(const char *text, size_t size, struct kernel_layout *layout);

struct kernel_page {
    const uint8_t *next, *end;
    uint64_t time;    /* of the last event */
    bool has_missed;  /* events were lost before this page ... */
    uint64_t missed;  /* ... so many; 0: the kernel does not know */
};

struct kernel_event {
    uint64_t time;    /* ticks */
    const uint8_t *data;
    size_t size;
};

/* False: the page makes no sense. */
bool kernel_page_open(struct kernel_page *page, const struct kernel_layout *layout, const uint8_t *data,
                      size_t size);

/* 1: the next event; 0: the end; -1: the page makes no sense from here on. */
int kernel_page_next(struct kernel_page *page, struct kernel_event *event);

#endif
