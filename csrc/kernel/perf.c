/* Context switches and page faults by perf_event_open; see perf.h. */
#include "kernel/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "common/array.h"

#define PAGES_MOST 128 /* of a buffer, with one for its head: as much as each user may lock */
#define PAGES_LEAST 8
#define SAMPLE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU)
#define RECORD_MAX 256         /* bytes of a record that are looked at */
#define EVENT_MAX (8 + 4 + 24) /* bytes of one in a page */
#define THREAD_FLAG 0x10000    /* CLONE_THREAD */
#define STATE_WAITS 1
#define STATE_PREEMPTED 256    /* as sched_switch has it */
enum { TIME_EXTEND = 30, DELTA_BITS = 27 }; /* as in pages.c */
#define MISSED (3u << 30)      /* events were lost, and their number stands behind the data */

struct perf {
    uint32_t cpu;
    int *fds;
    size_t count, capacity;
    struct perf_event_mmap_page *head; /* NULL: not mapped yet */
    size_t size;                       /* of the data */
    uint64_t lost;                     /* not told yet */
};

/* What stands behind every record, and at the beginning of a sample. */
struct tail {
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, reserved;
};
struct sample {
    uint64_t ip;
    uint32_t pid, tid;
    uint64_t time, address;
    uint32_t cpu, reserved;
};
struct fork {
    uint32_t pid, parent, tid, parent_tid;
    uint64_t time;
};

static int open_event(uint64_t what, pid_t tid, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = what, .sample_type = SAMPLE,
        .inherit = 1, .exclude_kernel = 1, .exclude_hv = 1, .sample_id_all = 1,
        .use_clockid = 1, .clockid = CLOCK_MONOTONIC,
    };
    if (what == PERF_COUNT_SW_DUMMY)
        attr.context_switch = attr.task = 1;
    else
        attr.sample_period = 1;
    int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int perf_allowed(void)
{
    int fd = open_event(PERF_COUNT_SW_DUMMY, 0, -1);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

struct perf *perf_new(uint32_t cpu)
{
    struct perf *perf = calloc(1, sizeof *perf);
    if (perf)
        perf->cpu = cpu;
    return perf;
}

void perf_free(struct perf *perf)
{
    if (!perf)
        return;
    if (perf->head)
        munmap(perf->head, perf->size + (size_t)sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < perf->count; i++)
        close(perf->fds[i]);
    free(perf->fds);
    free(perf);
}

static int map_buffer(struct perf *perf, int fd)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t pages = PAGES_MOST; pages >= PAGES_LEAST; pages /= 2) {
        void *mapped = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapped != MAP_FAILED) {
            perf->head = mapped;
            perf->size = pages * page;
            return 0;
        }
    }
    return -errno;
}

static int attach_one(struct perf *perf, uint64_t what, pid_t tid)
{
    if (!array_reserve(&perf->fds, &perf->capacity, perf->count + 1, sizeof *perf->fds))
        return -ENOMEM;
    int fd = open_event(what, tid, (int)perf->cpu), error = 0;
    if (fd < 0)
        return fd;
    if (!perf->head)
        error = map_buffer(perf, fd);
    else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, perf->fds[0]) < 0)
        error = -errno;
    if (error) {
        close(fd);
        return error;
    }
    perf->fds[perf->count++] = fd;
    return 0;
}

int perf_attach(struct perf *perf, pid_t tid, bool faults)
{
    int error = attach_one(perf, PERF_COUNT_SW_DUMMY, tid);
    return error || !faults ? error : attach_one(perf, PERF_COUNT_SW_PAGE_FAULTS, tid);
}

void perf_stop(struct perf *perf)
{
    for (size_t i = 0; i < perf->count; i++)
        ioctl(perf->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

/* ---- time --------------------------------------------------------------------------------- */

void perf_look_at_clock(struct perf_clock *clock)
{
    uint64_t least = UINT64_MAX;
    clock->before = clock->now;
    for (int i = 0; i < 5; i++) { /* the one that nothing has interrupted */
        uint64_t first = clock_units(clock->kind, 0), ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t last = clock_units(clock->kind, 0);
        if (last - first >= least)
            continue;
        least = last - first;
        clock->now.ns = ns;
        clock->now.ticks = clock->kind == CLOCK_TICKS ? first + least / 2 : ns;
    }
}

static uint64_t ticks_of(const struct perf_clock *clock, uint64_t ns)
{
    uint64_t span = clock->now.ns - clock->before.ns, ticks = clock->now.ticks - clock->before.ticks;
    __int128 distance = (__int128)ns - clock->now.ns;
    if (clock->kind != CLOCK_TICKS || !span)
        return clock->kind != CLOCK_TICKS ? ns : clock->now.ticks;
    return (uint64_t)(clock->now.ticks + distance * ticks / span);
}

/* ---- pages -------------------------------------------------------------------------------- */

struct page {
    uint8_t *start, *next;
    uint64_t time; /* of the last event; 0: there is none */
};

static uint8_t *put_word(uint8_t *p, uint32_t word)
{
    memcpy(p, &word, sizeof word);
    return p + sizeof word;
}

static void put(struct page *page, uint64_t time, enum perf_event number, uint32_t tid, uint64_t first, uint64_t second)
{
    uint64_t fields[2] = {first, second};
    uint16_t event[4] = {(uint16_t)number, 0, 0, 0};

    if (!page->time) {
        memcpy(page->start, &time, sizeof time);
        page->time = time;
    }
    uint64_t delta = time > page->time ? time - page->time : 0;
    page->time += delta;
    if (delta >> DELTA_BITS) {
        page->next = put_word(page->next, TIME_EXTEND | (uint32_t)(delta & ((1u << DELTA_BITS) - 1)) << 5);
        page->next = put_word(page->next, (uint32_t)(delta >> DELTA_BITS));
        delta = 0;
    }
    memcpy(event + 2, &tid, sizeof tid);
    page->next = put_word(page->next, (sizeof event + sizeof fields) / 4 | (uint32_t)delta << 5);
    memcpy(page->next, event, sizeof event);
    memcpy(page->next + sizeof event, fields, sizeof fields);
    page->next += sizeof event + sizeof fields;
}

/* Copies `size` bytes of the buffer, which goes round. */
static void copy(const struct perf *perf, uint64_t at, void *to, size_t size)
{
    const uint8_t *data = (const uint8_t *)perf->head + perf->head->data_offset;
    size_t offset = (size_t)(at % perf->size), first = perf->size - offset;
    first = first < size ? first : size;
    memcpy(to, data + offset, first);
    memcpy((uint8_t *)to + first, data, size - first);
}

static void add(struct perf *perf, const struct perf_clock *clock, pid_t self, struct page *page,
                const struct perf_event_header *header, const uint8_t *bytes, size_t size)
{
    struct tail tail;
    struct sample sample;
    struct fork fork;
    uint64_t lost;

    switch (header->type) {
    case PERF_RECORD_SAMPLE:
        if (size < sizeof sample)
            return;
        memcpy(&sample, bytes, sizeof sample);
        if (sample.pid != (uint32_t)self)
            put(page, ticks_of(clock, sample.time), PERF_FAULT, sample.tid, sample.address, sample.ip);
        return;
    case PERF_RECORD_SWITCH:
        if (size < sizeof tail)
            return;
        memcpy(&tail, bytes + size - sizeof tail, sizeof tail);
        if (tail.pid == (uint32_t)self || !tail.tid || tail.tid > INT32_MAX)
            return;
        if (header->misc & PERF_RECORD_MISC_SWITCH_OUT) {
            bool preempted = header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
            put(page, ticks_of(clock, tail.time), PERF_SWITCH_OUT, tail.tid, tail.tid,
                preempted ? STATE_PREEMPTED : STATE_WAITS);
        } else {
            put(page, ticks_of(clock, tail.time), PERF_SWITCH_IN, tail.tid, tail.tid, 0);
        }
        return;
    case PERF_RECORD_FORK:
        if (size < sizeof fork)
            return;
        memcpy(&fork, bytes, sizeof fork);
        put(page, ticks_of(clock, fork.time), PERF_BEGIN, fork.parent_tid, fork.tid,
            fork.pid == fork.parent ? THREAD_FLAG : 0);
        return;
    case PERF_RECORD_EXIT:
        if (size < sizeof fork)
            return;
        memcpy(&fork, bytes, sizeof fork);
        put(page, ticks_of(clock, fork.time), PERF_END, fork.tid, 0, 0);
        return;
    case PERF_RECORD_LOST:
        if (size < 16)
            return;
        memcpy(&lost, bytes + 8, sizeof lost);
        perf->lost += lost;
        return;
    default:
        return;
    }
}

size_t perf_read(struct perf *perf, const struct perf_clock *clock, pid_t self, uint8_t bytes[PERF_PAGE_SIZE])
{
    struct page page = {.start = bytes, .next = bytes + PERF_PAGE_HEAD};
    if (!perf->head)
        return 0;
    uint64_t tail = perf->head->data_tail; /* only this process writes it */
    /* pairs with the kernel's barrier before it moves data_head */
    uint64_t head = __atomic_load_n(&perf->head->data_head, __ATOMIC_ACQUIRE);
    while (tail != head && page.next - bytes + EVENT_MAX + 8 <= PERF_PAGE_SIZE) {
        struct perf_event_header header;
        uint8_t record[RECORD_MAX];
        copy(perf, tail, &header, sizeof header);
        if (header.size < sizeof header || header.size > head - tail) {
            tail = head; /* it makes no sense */
            break;
        }
        size_t size = header.size - sizeof header;
        if (size <= sizeof record && (header.type != PERF_RECORD_LOST || page.next == bytes + PERF_PAGE_HEAD)) {
            copy(perf, tail + sizeof header, record, size);
            add(perf, clock, self, &page, &header, record, size);
        } else if (header.type == PERF_RECORD_LOST) {
            break; /* the next page begins with it */
        }
        tail += header.size;
    }
    /* all of it has been read */
    __atomic_store_n(&perf->head->data_tail, tail, __ATOMIC_RELEASE);
    uint64_t used = (uint64_t)(page.next - bytes) - PERF_PAGE_HEAD;
    if (!used && !perf->lost)
        return 0;
    if (!page.time) {
        uint64_t time = clock->now.ticks;
        memcpy(bytes, &time, sizeof time);
    }
    if (perf->lost)
        memcpy(page.next, &perf->lost, sizeof perf->lost);
    used |= perf->lost ? MISSED : 0;
    perf->lost = 0;
    memcpy(bytes + 8, &used, sizeof used);
    return PERF_PAGE_SIZE;
}
