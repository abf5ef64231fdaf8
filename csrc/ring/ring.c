/* The shared-memory ring. ring.h has the contract of each function, docs/ring.md the reasons for
 * the order of each atomic. Producers come first, then the dumper.
 */
#define _GNU_SOURCE 1 /* open file description locks */
#include "ring/ring.h"
#include "ring/clock.h"
#include "common/decimal.h"
#include "common/feature.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "atomics work between processes");

#ifdef RING_TEST_POINTS
void (*ring_test_point)(const char *name);
uint64_t clock_test_offset;
#endif

#define MAPPED_TOGETHER (64u << 10) /* bytes: Linux's fault_around_bytes, as a rule */
#define SMALL_FROM (16u << 20) /* bytes of a buffer that has small chunks: an eighth of it ... */
#define SMALL_MOST 4096        /* ... but no more of them */

#define load(word, order) atomic_load_explicit(&(word), memory_order_##order)
#define store(word, value, order) atomic_store_explicit(&(word), value, memory_order_##order)
#define add(word, value, order) atomic_fetch_add_explicit(&(word), value, memory_order_##order)
#define exchange_if(word, expected, value, order) /* relaxed if it fails */ \
    atomic_compare_exchange_strong_explicit(&(word), &(expected), value, memory_order_##order, \
                                            memory_order_relaxed)

/* ---- names of states ---------------------------------------------------------------------- */

static const char *name_of(const char *const names[], size_t count, uint32_t state)
{
    return state < count ? names[state] : "?";
}
#define NAME_OF(names, state) name_of(names, sizeof names / sizeof *names, state)

const char *ring_chunk_state_name(uint32_t state)
{
    static const char *const names[] = CHUNK_STATE_NAMES;
    return NAME_OF(names, state);
}

const char *ring_process_state_name(uint32_t state)
{
    static const char *const names[] = PROCESS_STATE_NAMES;
    return NAME_OF(names, state);
}

const char *ring_dumper_state_name(uint32_t state)
{
    static const char *const names[] = DUMPER_STATE_NAMES;
    return NAME_OF(names, state);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static uint64_t bodies_offset(uint32_t chunk_count)
{
    uint64_t end = sizeof(struct ring_header) + (uint64_t)chunk_count * sizeof(struct chunk_header);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE); /* bodies have a protection of their own */
    return (end + page - 1) / page * page;
}

uint32_t ring_chunk_size(uint64_t buffer_size)
{
    if (buffer_size < (uint64_t)RING_MIN_CHUNKS * RING_MIN_CHUNK_SIZE)
        return 0;
    uint32_t size = RING_MIN_CHUNK_SIZE;
    while (size < RING_MAX_CHUNK_SIZE && size * 2 <= buffer_size / 256)
        size *= 2;
    return size;
}

/* Divides a buffer into chunks. False: it is too small or too large. */
static bool divide(uint64_t buffer_size, struct ring *ring)
{
    ring->chunk_size = ring_chunk_size(buffer_size);
    if (!ring->chunk_size || buffer_size / ring->chunk_size > RING_MAX_CHUNKS - SMALL_MOST)
        return false;
    uint64_t small = buffer_size < SMALL_FROM ? 0 : buffer_size / 8 / RING_SMALL_CHUNK_SIZE;
    if (small > SMALL_MOST)
        small = SMALL_MOST;
    ring->small_count = (uint32_t)small;
    ring->chunk_count = (uint32_t)(small + (buffer_size - small * RING_SMALL_CHUNK_SIZE) / ring->chunk_size);
    return true;
}

/* The size of all bodies. */
static uint64_t bodies_size(const struct ring *ring)
{
    return (uint64_t)ring->small_count * RING_SMALL_CHUNK_SIZE
           + (uint64_t)(ring->chunk_count - ring->small_count) * ring->chunk_size;
}

/* The inode of this process's pid namespace; 0: there are none. Takes no file descriptor. */
static uint64_t pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) ? 0 : (uint64_t)status.st_ino;
}

/* Reads the clock between two readings of the counter, and keeps the closest pair of a few. */
static void read_clock(const struct ring_header *header, clockid_t id, uint64_t *ns, uint64_t *units)
{
    uint64_t closest = UINT64_MAX;
    for (int i = 0; i < 16; i++) {
        uint64_t before = clock_units(header->clock_kind, 0);
        uint64_t now = clock_ns(id);
        uint64_t after = clock_units(header->clock_kind, 0);
        if (after - before < closest) {
            closest = after - before;
            *ns = now;
            *units = (before + closest / 2) >> header->clock_shift;
        }
    }
}

static void sleep_ns(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

static void clock_init(struct ring_header *header)
{
    header->clock_kind = clock_detect();
    if (header->clock_kind == CLOCK_TICKS) {
        uint64_t ns, ns_later, ticks, ticks_later;
        read_clock(header, CLOCK_MONOTONIC, &ns, &ticks);
        sleep_ns(1000000);
        read_clock(header, CLOCK_MONOTONIC, &ns_later, &ticks_later);
        while (header->clock_shift < 8 && (ns_later - ns) << header->clock_shift < 4 * (ticks_later - ticks))
            header->clock_shift++;
    } else {
        store(header->scale, UINT64_C(1) << 32, relaxed);
    }
    uint64_t epoch_ns;
    read_clock(header, CLOCK_REALTIME, &epoch_ns, &header->epoch_units);
    header->epoch_ns = (int64_t)epoch_ns;
    read_clock(header, CLOCK_MONOTONIC, &header->base_ns, &header->base_units);
}

static int create_file(int fd, const struct ring *ring, const char *settings, size_t settings_size)
{
    uint64_t size = bodies_offset(ring->chunk_count) + bodies_size(ring);
    int error;

    if (fchmod(fd, 0600)) /* whatever the umask */
        return -errno;
    do
        error = posix_fallocate(fd, 0, (off_t)size);
    while (error == EINTR);
    if (error)
        return -error;
    struct ring_header *header = mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (header == MAP_FAILED)
        return -errno;
    header->version = RING_VERSION;
    header->chunk_size = ring->chunk_size;
    header->chunk_count = ring->chunk_count;
    header->small_count = ring->small_count;
    header->settings_size = (uint32_t)settings_size;
    header->features = FEATURES_MADE;
    header->size = size;
    header->bodies_offset = bodies_offset(ring->chunk_count);
    header->pid_namespace = pid_namespace();
    clock_init(header);
    store(header->next_stream, 1, relaxed);
    store(header->next_number, 1, relaxed);
    if (settings_size)
        memcpy(header->settings, settings, settings_size);
    store(header->magic, RING_MAGIC, release);
    munmap(header, sizeof *header);
    return 0;
}

int ring_create(const char *path, uint64_t buffer_size, const char *settings, size_t settings_size)
{
    struct ring ring = {0};
    if (!divide(buffer_size, &ring))
        return -EINVAL;
    if (settings_size > RING_SETTINGS_SIZE)
        return -E2BIG;
    if (settings_size && settings[settings_size - 1])
        return -EINVAL;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int error = create_file(fd, &ring, settings, settings_size);
    close(fd);
    if (error)
        unlink(path);
    return error;
}

/* A descriptor of the file at path, if it is a regular one of this user's. */
static int open_ring(const char *path, int flags, uint64_t *size)
{
    struct stat status;
    int error = 0;
    int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); /* no waiting at a FIFO */
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status))
        error = -errno;
    else if (!S_ISREG(status.st_mode))
        error = -EPROTO;
    else if (status.st_uid != geteuid() || status.st_mode & 077)
        error = -EPERM;
    if (error) {
        close(fd);
        return error;
    }
    *size = (uint64_t)status.st_size;
    return fd;
}

/* Reads the sizes and offsets, after checking everything that depends on them. */
static int check_header(int fd, uint64_t size, struct ring *ring)
{
    if (size < sizeof(struct ring_header))
        return -EPROTO;
    struct ring_header *header = mmap(NULL, sizeof *header, PROT_READ, MAP_SHARED, fd, 0);
    if (header == MAP_FAILED)
        return -errno;
    bool good = load(header->magic, acquire) == RING_MAGIC && header->version == RING_VERSION;
    ring->chunk_size = header->chunk_size;
    ring->chunk_count = header->chunk_count;
    ring->small_count = header->small_count;
    good = good && ring->chunk_size >= RING_MIN_CHUNK_SIZE && ring->chunk_size <= RING_MAX_CHUNK_SIZE
           && !(ring->chunk_size & (ring->chunk_size - 1))
           && ring->chunk_count >= RING_MIN_CHUNKS && ring->chunk_count <= RING_MAX_CHUNKS
           && ring->small_count <= ring->chunk_count - RING_MIN_CHUNKS
           && header->bodies_offset == bodies_offset(ring->chunk_count)
           && header->size == size && size == bodies_offset(ring->chunk_count) + bodies_size(ring)
           && (header->clock_kind == CLOCK_TICKS || header->clock_kind == CLOCK_NANOSECONDS)
           && header->clock_shift < 64
           && !features_refused(header->features)
           && header->settings_size <= RING_SETTINGS_SIZE
           && (!header->settings_size || !header->settings[header->settings_size - 1]);
    munmap(header, sizeof *header);
    return good ? 0 : -EPROTO;
}

static struct flock first_byte(short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
}

/* The dumper maps the bodies read-only. All others have one mapping, as each costs a fork some
 * µs. */
static int map_ring(struct ring *ring, int fd, enum ring_role role)
{
    uint64_t offset = bodies_offset(ring->chunk_count);
    int headers = role == RING_READER ? PROT_READ : PROT_READ | PROT_WRITE;
    int bodies = role == RING_PRODUCER ? PROT_READ | PROT_WRITE : PROT_READ;

    ring->header = mmap(NULL, offset + bodies_size(ring), headers, MAP_SHARED, fd, 0);
    if (ring->header == MAP_FAILED)
        return -errno;
    ring->bodies = (uint8_t *)ring->header + offset;
    if (bodies != headers && mprotect(ring->bodies, bodies_size(ring), bodies)) {
        int error = -errno;
        munmap(ring->header, offset + bodies_size(ring));
        return error;
    }
    ring->chunks = (struct chunk_header *)(ring->header + 1);
    return 0;
}

int ring_attach(struct ring *ring, const char *path, enum ring_role role, int *lock_fd)
{
    uint64_t size = 0;
    int error;
    int fd = open_ring(path, role == RING_READER ? O_RDONLY : O_RDWR, &size);

    memset(ring, 0, sizeof *ring);
    *lock_fd = -1;
    if (fd < 0)
        return fd;
    error = check_header(fd, size, ring);
    if (!error && role == RING_DUMPER) {
        struct flock lock = first_byte(F_WRLCK);
        if (fcntl(fd, F_OFD_SETLK, &lock))
            error = errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
    }
    if (!error)
        error = map_ring(ring, fd, role);
    if (error || role != RING_DUMPER)
        close(fd);
    if (error) {
        memset(ring, 0, sizeof *ring);
        return error;
    }
    if (role == RING_DUMPER) {
        *lock_fd = fd;
        store(ring->header->dumper_pid, (uint32_t)getpid(), relaxed);
        store(ring->header->troubled, 0, relaxed);
        /* A dumper that died may have freed a chunk without counting it. */
        add(ring->header->freed, 1, release);
    }
    return 0;
}

void ring_detach(struct ring *ring)
{
    if (!ring->header)
        return;
    munmap(ring->header, bodies_offset(ring->chunk_count) + bodies_size(ring));
    memset(ring, 0, sizeof *ring);
}

int ring_has_dumper(const char *path)
{
    uint64_t size = 0;
    int fd = open_ring(path, O_RDONLY, &size);
    if (fd < 0)
        return fd;
    struct flock lock = first_byte(F_RDLCK);
    int result = fcntl(fd, F_OFD_GETLK, &lock) ? -errno : lock.l_type != F_UNLCK;
    close(fd);
    return result;
}

/* ---- the clock ---------------------------------------------------------------------------- */

/* between two readings, each exact to some 20 ns: an error of 4 in a million */
#define CLOCK_BASE_NS 10000000

void ring_clock_calibrate(struct ring *ring)
{
    struct ring_header *header = ring->header;
    uint64_t ns, units, unknown = 0;

    if (ring_clock_scale(ring))
        return;
    uint64_t passed = clock_ns(CLOCK_MONOTONIC) - header->base_ns;
    if (passed < CLOCK_BASE_NS)
        sleep_ns(CLOCK_BASE_NS - passed);
    read_clock(header, CLOCK_MONOTONIC, &ns, &units);
    ns -= header->base_ns;
    units -= header->base_units;
    uint64_t scale = units ? (uint64_t)(((unsigned __int128)ns << 32) / units) : 0;
    exchange_if(header->scale, unknown, scale ? scale : 1, relaxed);
}

uint64_t ring_clock_scale(const struct ring *ring)
{
    return load(ring->header->scale, relaxed);
}

/* The counter of most machines is reset while they sleep. Then it is far behind the kernel's clock:
 * farther than an error of its rate can explain. */
#define CLOCK_SLACK_NS 1000000u

uint64_t ring_clock_units(const struct ring *ring)
{
    const struct ring_header *header = ring->header;
    uint64_t units = clock_units(header->clock_kind, header->clock_shift), scale = ring_clock_scale(ring);
    if (header->clock_kind != CLOCK_TICKS || !scale)
        return units;
    uint64_t passed_ns = clock_ns(CLOCK_MONOTONIC) - header->base_ns;
    uint64_t passed = (uint64_t)(((unsigned __int128)passed_ns << 32) / scale);
    uint64_t slack = (uint64_t)(((unsigned __int128)(CLOCK_SLACK_NS + passed_ns / 1024) << 32) / scale);
    if ((int64_t)(units - header->base_units) >= (int64_t)(passed - slack))
        return units;
    return header->base_units + passed;
}

int64_t ring_now_ns(const struct ring *ring)
{
    const struct ring_header *header = ring->header;
    uint64_t scale = ring_clock_scale(ring);
    if (!scale)
        return (int64_t)((uint64_t)header->epoch_ns + clock_ns(CLOCK_MONOTONIC) - header->base_ns);
    int64_t passed = (int64_t)(ring_clock_units(ring) - header->epoch_units);
    return (int64_t)((uint64_t)header->epoch_ns + (uint64_t)((__int128)passed * (__int128)scale >> 32));
}

/* ---- processes ---------------------------------------------------------------------------- */

/* The facts of a process in /proc. */
struct process_stat {
    uint64_t start_time;
    uint64_t image;  /* 0: hidden from us */
    uint32_t parent; /* pid */
    bool zombie;
};

/* "/proc/PID/stat", in `path`. This code uses no function of the C library that formats or parses:
 * each page of it that a forked child executes first costs it a page fault. */
static const char *stat_path(char path[32], uint32_t pid)
{
    static const char head[] = "/proc/", tail[] = "/stat";
    char *start = path + 31 - sizeof tail;
    memcpy(start, tail, sizeof tail);
    start = decimal_before(start, pid) - (sizeof head - 1);
    memcpy(start, head, sizeof head - 1);
    return start;
}

/* 0, or a negative errno. -ESRCH: there is no such process. All other errors tell nothing of it: no
 * file descriptor is left (-EMFILE, -ENFILE), no memory, a text of another shape (-EPROTO). */
static int read_stat(uint32_t pid, struct process_stat *stat)
{
    char path[32], text[1024];
    int fd = open(stat_path(path, pid), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    ssize_t size = read(fd, text, sizeof text - 1);
    int error = size < 0 ? -errno : 0;
    close(fd);
    if (error)
        return error;
    /* Field 2 is the command in parentheses, and may contain both. */
    const char *end = text + size, *p = end;
    while (p > text && p[-1] != ')')
        p--;
    if (p == text || end - p < 2)
        return -EPROTO;
    char state = p[1];
    uint64_t fields[29] = {0};
    for (int number = 2; p < end && number <= 28; p++)
        if (*p == ' ')
            number++;
        else if (*p >= '0' && *p <= '9')
            fields[number] = fields[number] * 10 + (uint64_t)(*p - '0');
    stat->parent = (uint32_t)fields[4];
    stat->start_time = fields[22];
    stat->image = fields[28];
    /* A main thread that ended before the others is a zombie, too, but not alone. */
    stat->zombie = (state == 'Z' || state == 'X') && fields[20] <= 1;
    return stat->start_time ? 0 : -EPROTO;
}

uint64_t ring_start_time(uint32_t pid)
{
    struct process_stat stat;
    return !read_stat(pid, &stat) && !stat.zombie ? stat.start_time : 0;
}

bool ring_pids_count(const struct ring *ring)
{
    return pid_namespace() == ring->header->pid_namespace;
}

static uint32_t process_word(enum process_state state, uint32_t pid)
{
    return (uint32_t)state | pid << 8;
}

static int take_slot(struct ring *ring, const struct process_stat *stat, uint32_t parent)
{
    struct ring_header *header = ring->header;
    uint32_t pid = (uint32_t)getpid();
    for (uint32_t i = load(header->process_hint, relaxed); i < RING_PROCESSES; i++) {
        struct ring_process *process = &header->processes[i];
        uint32_t none = PROCESS_NONE;
        if (load(process->state, relaxed) != PROCESS_NONE
            || !exchange_if(process->state, none, process_word(PROCESS_STARTING, pid), relaxed))
            continue;
        RING_TEST_POINT(after_slot);
        store(header->process_hint, i + 1, relaxed);
        process->pid = pid;
        process->start_time = stat->start_time;
        process->image = stat->image;
        process->registered_ns = ring_now_ns(ring);
        process->parent = parent;
        store(process->state, process_word(PROCESS_RUNNING, pid), release);
        ring->pid = pid;
        ring->image = stat->image;
        return (int)i;
    }
    add(header->turned_away, 1, relaxed);
    return -ENOSPC;
}

int ring_process_register(struct ring *ring, uint32_t parent)
{
    struct process_stat stat;
    if (!ring_pids_count(ring))
        return -EXDEV;
    int error = read_stat((uint32_t)getpid(), &stat);
    return error ? error : take_slot(ring, &stat, parent);
}

#define TICK_NS 10000000u /* the kernel tells start times in hundredths of a second */

uint64_t ring_fork_time(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

uint64_t ring_fork_start(uint64_t before)
{
    uint64_t now = ring_fork_time();
    return before && now / TICK_NS == before / TICK_NS ? now / TICK_NS : 0;
}

int ring_process_register_fork(struct ring *ring, uint32_t parent, uint64_t start_time)
{
    struct process_stat stat = {.start_time = start_time, .image = ring->image};
    /* A process in another pid namespace does not see its parent; one whose parent has ended has a
     * new one. */
    if ((uint32_t)getppid() != ring->pid)
        return ring_process_register(ring, parent);
    /* stays 0 if /proc is out of reach: after a chroot, or with all file descriptors in use */
    if (!start_time)
        read_stat((uint32_t)getpid(), &stat);
    return take_slot(ring, &stat, parent);
}

/* The last slot of this process: index + 1; 0: none. */
static uint32_t find_process(const struct ring *ring, uint32_t pid, uint64_t start_time)
{
    uint32_t i = load(ring->header->process_hint, relaxed);
    if (i > RING_PROCESSES) /* scribbled over */
        return 0;
    while (i < RING_PROCESSES && load(ring->header->processes[i].state, relaxed) != PROCESS_NONE)
        i++;
    for (; i > 0; i--) {
        const struct ring_process *process = &ring->header->processes[i - 1];
        if ((load(process->state, acquire) & 0xff) != PROCESS_STARTING && process->pid == pid
            && process->start_time == start_time)
            return i;
    }
    return 0;
}

int ring_process_register_program(struct ring *ring)
{
    struct process_stat self, above;
    uint32_t pid = (uint32_t)getpid(), running = process_word(PROCESS_RUNNING, pid);
    if (!ring_pids_count(ring))
        return -EXDEV;
    int error = read_stat(pid, &self);
    if (error)
        return error;
    uint32_t parent = find_process(ring, pid, self.start_time);
    if (parent) {
        struct ring_process *before = &ring->header->processes[parent - 1];
        if (load(before->state, relaxed) == running) {
            store(before->exit_status, RING_EXIT_REPLACED, relaxed);
            store(before->ended_ns, ring_now_ns(ring), relaxed);
            exchange_if(before->state, running, process_word(PROCESS_EXITED, pid), release);
        }
    }
    above = self;
    while (!parent && above.parent) {
        uint32_t ancestor = above.parent;
        if (read_stat(ancestor, &above))
            break;
        parent = find_process(ring, ancestor, above.start_time);
    }
    return take_slot(ring, &self, parent);
}

uint32_t ring_turned_away(const struct ring *ring)
{
    return load(ring->header->turned_away, relaxed);
}

static void say_end(struct ring *ring, uint32_t process, enum process_state state, int32_t exit_status)
{
    struct ring_process *self = &ring->header->processes[process];
    uint32_t running = process_word(PROCESS_RUNNING, (uint32_t)getpid());

    if (load(self->state, relaxed) != running)
        return;
    store(self->exit_status, exit_status, relaxed);
    store(self->ended_ns, ring_now_ns(ring), relaxed);
    exchange_if(self->state, running, process_word(state, (uint32_t)getpid()), release);
}

void ring_process_exit(struct ring *ring, uint32_t process, int32_t exit_status)
{
    say_end(ring, process, PROCESS_EXITED, exit_status);
}

void ring_process_leave(struct ring *ring, uint32_t process, int32_t exit_status)
{
    say_end(ring, process, PROCESS_LEAVING, exit_status);
}

void ring_process_saved(struct ring *ring, uint32_t process)
{
    store(ring->header->processes[process].state, PROCESS_SAVED, release);
}

void ring_process_left(struct ring *ring, uint32_t process)
{
    store(ring->header->processes[process].state, PROCESS_LEFT, release);
}

enum process_state ring_process_state(const struct ring *ring, uint32_t process)
{
    return load(ring->header->processes[process].state, acquire) & 0xff;
}

/* A process whose image is hidden (it has changed its user) counts as the same program. */
static bool same_image(const struct ring_process *process, const struct process_stat *stat)
{
    return !stat->image || !process->image || stat->image == process->image;
}

/* Whether the process with this pid runs, and has this start time (0: unknown). If /proc cannot be
 * read, *stat is zero, and the process counts as running: it may still write. */
static bool runs(uint32_t pid, uint64_t start_time, struct process_stat *stat)
{
    int error = read_stat(pid, stat);
    if (error) {
        *stat = (struct process_stat){0};
        return error != -ESRCH;
    }
    return !stat->zombie && (stat->start_time == start_time || !start_time);
}

bool ring_process_alive(const struct ring *ring, uint32_t index)
{
    const struct ring_process *process = &ring->header->processes[index];
    struct process_stat stat;
    uint32_t word = load(process->state, acquire);

    switch (word & 0xff) {
    case PROCESS_STARTING:
        return runs(word >> 8, 0, &stat);
    case PROCESS_RUNNING:
    case PROCESS_LEAVING:
    case PROCESS_LEFT:
        return runs(process->pid, process->start_time, &stat) && same_image(process, &stat);
    case PROCESS_EXITED:
        return load(process->exit_status, relaxed) != RING_EXIT_REPLACED
               && runs(process->pid, process->start_time, &stat) && same_image(process, &stat);
    default:
        return false;
    }
}

bool ring_process_replaced(const struct ring *ring, uint32_t index)
{
    const struct ring_process *process = &ring->header->processes[index];
    struct process_stat stat;
    uint32_t state = load(process->state, acquire) & 0xff;

    if (state == PROCESS_EXITED && load(process->exit_status, relaxed) == RING_EXIT_REPLACED)
        return true;
    return state == PROCESS_RUNNING && runs(process->pid, process->start_time, &stat) && !same_image(process, &stat);
}

uint64_t ring_process_lost(const struct ring *ring, uint32_t process)
{
    return load(ring->header->processes[process].lost, relaxed);
}

/* ---- the dumper's word -------------------------------------------------------------------- */

static void put_message(char *place, size_t room, const char *message)
{
    size_t size = strnlen(message, room);
    if (size == room) {
        size--;
        while (size && ((uint8_t)message[size] & 0xc0) == 0x80) /* no character is cut in two */
            size--;
    }
    memcpy(place, message, size);
    place[size] = '\0';
}

void ring_dumper_say(struct ring *ring, enum dumper_state state, const char *message)
{
    put_message(ring->header->message, RING_MESSAGE_SIZE, message);
    store(ring->header->dumper_state, state, release);
}

void ring_dumper_say_so_far(struct ring *ring, const char *message)
{
    put_message(ring->header->so_far, RING_MESSAGE_SIZE, message);
}

void ring_dumper_say_trouble(struct ring *ring, const char *why)
{
    store(ring->header->troubled, 0, relaxed);
    /* whoever reads a byte of the new text sees the 0 behind it */
    atomic_thread_fence(memory_order_release);
    if (!*why)
        return;
    put_message(ring->header->trouble, RING_TROUBLE_SIZE, why);
    store(ring->header->troubled, 1, release);
}

void ring_dumper_trouble(const struct ring *ring, char why[RING_TROUBLE_SIZE])
{
    bool troubled = load(ring->header->troubled, acquire);
    memcpy(why, ring->header->trouble, RING_TROUBLE_SIZE);
    atomic_thread_fence(memory_order_acquire);
    if (!troubled || !load(ring->header->troubled, relaxed))
        why[0] = '\0';
    why[RING_TROUBLE_SIZE - 1] = '\0';
}

enum dumper_state ring_dumper_state(const struct ring *ring)
{
    return load(ring->header->dumper_state, acquire);
}

void ring_dumper_pass_ended(struct ring *ring)
{
    add(ring->header->passes, 1, relaxed);
    if (load(ring->header->dumper_start, relaxed))
        store(ring->header->dumper_start, 0, relaxed);
}

#define START_BACK_OFF 5 /* times that the pause between two starts is doubled */

bool ring_dumper_elect(struct ring *ring, uint64_t interval_ns)
{
    uint64_t word = load(ring->header->dumper_start, relaxed), starts = word & 0xff;
    uint64_t now = clock_ns(CLOCK_BOOTTIME) / 1000000u, last = word >> 8;
    uint64_t pause = (interval_ns / 1000000u) << (starts < START_BACK_OFF ? starts : START_BACK_OFF);
    /* A time in the future is not this machine's: it was written over. */
    if (word && last <= now && now - last < pause)
        return false;
    return exchange_if(ring->header->dumper_start, word, now << 8 | (starts < 0xff ? starts + 1 : starts), relaxed);
}

uint64_t ring_dumper_passes(const struct ring *ring)
{
    return load(ring->header->passes, relaxed);
}

uint32_t ring_next_number(struct ring *ring)
{
    return add(ring->header->next_number, 1, relaxed);
}

uint32_t ring_next_stream(struct ring *ring)
{
    return add(ring->header->next_stream, 1, relaxed);
}

/* places where a definition may be; if all are taken, it stays unknown, and is defined again */
#define KNOWN_PROBES 16

uint32_t ring_known_find(const struct ring *ring, uint64_t hash)
{
    for (uint32_t i = 0; i < KNOWN_PROBES; i++) {
        const struct ring_known *known = &ring->header->known[(hash + i) % RING_KNOWN];
        uint64_t there = load(known->hash, acquire);
        if (there == hash)
            return known->number < load(ring->header->next_number, relaxed) ? known->number : 0;
        if (!there)
            return 0;
    }
    return 0;
}

void ring_known_add(struct ring *ring, uint64_t hash, uint32_t number)
{
    for (uint32_t i = 0; i < KNOWN_PROBES; i++) {
        struct ring_known *known = &ring->header->known[(hash + i) % RING_KNOWN];
        uint64_t there = load(known->hash, relaxed);
        if (!there) {
            known->number = number;
            store(known->hash, hash, release);
        }
        if (!there || there == hash)
            return;
    }
}

/* ---- producers ---------------------------------------------------------------------------- */

static uint64_t chunk_word(enum chunk_state state, uint32_t owner)
{
    return (uint64_t)state | (uint64_t)owner << 8;
}

void stream_open(struct stream *stream, struct ring *ring, uint32_t process, uint64_t tid,
                 enum chunk_kind kind)
{
    *stream = (struct stream){
        .ring = ring,
        .process = process,
        .tid = tid,
        .kind = kind,
        .id = add(ring->header->next_stream, 1, relaxed),
    };
}

void stream_close(struct stream *stream)
{
    struct chunk_header *chunk = stream->chunk;
    if (!chunk)
        return;
    RING_TEST_POINT(before_seal);
    stream->busy = stream->kind == CHUNK_EVENTS && stream->next - stream->body >= RING_SMALL_CHUNK_SIZE / 2;
    if (stream->count) /* an empty chunk is not stored, and has no number */
        stream->sequence++;
    stream->chunk = NULL;
    stream->next = stream->end = stream->body = NULL;
    stream->count = 0;
    store(chunk->state, chunk_word(CHUNK_SEALED, stream->process), release);
    RING_TEST_POINT(after_seal);
}

void stream_abandon(struct stream *stream)
{
    *stream = (struct stream){0};
}

/* Claims the first free chunk from `index` up to `end`, trying each once; NULL: all are taken. The
 * search always begins at the front: so recently freed chunks, which are still in the processor's
 * caches, are used first. Going round all of them costs a call 8 ns more (benchmarks: fib). */
static struct chunk_header *claim(const struct ring *ring, uint32_t process, uint32_t index, uint32_t end)
{
    for (; index < end; index++) {
        struct chunk_header *chunk = &ring->chunks[index];
        uint64_t free_word = CHUNK_FREE;
        if (load(chunk->state, relaxed) == CHUNK_FREE
            && exchange_if(chunk->state, free_word, chunk_word(CHUNK_CLAIMED, process), acquire)) {
            RING_TEST_POINT(after_claim);
            return chunk;
        }
    }
    return NULL;
}

void stream_drop(struct stream *stream)
{
    stream->lost++;
    if (stream->ring)
        add(stream->ring->header->processes[stream->process].lost, 1, relaxed);
}

/* A page that a process reads first is mapped together with those around it that have been used
 * before; one that it writes first is mapped alone, with a page fault for each. */
static void map_body(const uint8_t *body, uint32_t size)
{
    for (uint32_t at = 0; at < size; at += MAPPED_TOGETHER)
        (void)*(const volatile uint8_t *)(body + at);
}

/* Seals the chunk and claims another with room for `size` bytes. False: none is free, and the chunk
 * stays. */
static bool replace_chunk(struct stream *stream, size_t size)
{
    struct ring *ring = stream->ring;
    /* Read before the search: a chunk freed during it moves `freed`, and the next call sees
     * that. */
    uint64_t freed = load(ring->header->freed, acquire) + 1;
    if (stream->freed_seen == freed && size >= stream->full_from)
        return false;
    uint32_t small = size <= RING_SMALL_RECORD ? ring->small_count : 0;
    struct chunk_header *chunk = stream->busy ? NULL : claim(ring, stream->process, 0, small);
    if (!chunk)
        chunk = claim(ring, stream->process, ring->small_count, ring->chunk_count);
    if (!chunk && stream->busy)
        chunk = claim(ring, stream->process, 0, small);
    if (!chunk) {
        stream->freed_seen = freed;
        stream->full_from = size <= RING_SMALL_RECORD ? 0 : size;
        return false;
    }
    stream_close(stream);
    uint32_t index = (uint32_t)(chunk - ring->chunks);

    stream->freed_seen = 0;
    stream->chunk = chunk;
    stream->body = ring_body(ring, index);
    map_body(stream->body, ring_body_size(ring, index));
    stream->next = stream->body;
    stream->end = stream->body + ring_body_size(ring, index);
    stream->min_depth = stream->depth;
    /* The first commit's release makes all of this visible with it. */
    chunk->kind = stream->kind;
    chunk->stream = stream->id;
    chunk->sequence = stream->sequence;
    chunk->base_depth = stream->depth;
    chunk->base_time = stream->time;
    chunk->lost_before = stream->lost;
    chunk->tid = stream->tid;
    chunk->pid = ring->header->processes[stream->process].pid;
    store(chunk->min_depth, stream->depth, relaxed);
    store(chunk->last_time, stream->time, relaxed);
    RING_TEST_POINT(after_header);
    return true;
}

bool stream_claim(struct stream *stream, size_t size)
{
    if (!stream->ring) /* abandoned */
        return false;
    stream_close(stream);
    return replace_chunk(stream, size);
}

uint8_t *stream_next_chunk(struct stream *stream, size_t size, size_t least)
{
    if (!stream->ring)
        return NULL;
    if (size <= stream->ring->chunk_size / 2) {
        if ((size_t)(stream->end - stream->next) < least)
            stream_close(stream);
        if (replace_chunk(stream, size) || stream->chunk || (least < size && replace_chunk(stream, least)))
            return stream->next;
    }
    stream_drop(stream);
    return NULL;
}

/* ---- dumper ------------------------------------------------------------------------------- */

int ring_look(const struct ring *ring, uint32_t index, struct chunk_view *view)
{
    const struct chunk_header *chunk = &ring->chunks[index];
    /* State first: once the chunk is sealed, `published` is final. */
    uint64_t word = load(chunk->state, acquire);
    uint64_t published = load(chunk->published, acquire);
    uint64_t owner = word >> 8;

    if (word == CHUNK_FREE)
        return 0;
    *view = (struct chunk_view){
        .index = index,
        .state = word & 0xff,
        .process = (uint32_t)owner,
        .used = (uint32_t)published,
        .count = (uint32_t)(published >> 32),
        .body = ring_body(ring, index),
    };
    if ((view->state != CHUNK_CLAIMED && view->state != CHUNK_SEALED) || owner >= RING_PROCESSES)
        return -EPROTO;
    if (!published)
        return 1;
    view->kind = chunk->kind;
    view->stream = chunk->stream;
    view->sequence = chunk->sequence;
    view->base_depth = chunk->base_depth;
    view->min_depth = load(chunk->min_depth, relaxed);
    view->base_time = chunk->base_time;
    view->last_time = load(chunk->last_time, relaxed);
    view->lost_before = chunk->lost_before;
    view->tid = chunk->tid;
    view->pid = chunk->pid;
    /* The hook writes no numbers beyond SQL's integers. */
    if (view->used > ring_body_size(ring, index) || !view->count || view->count > view->used
        || view->kind > CHUNK_DEFINITIONS
        || !view->stream || view->stream >= load(ring->header->next_stream, relaxed)
        || (int64_t)(view->base_time | view->last_time | view->lost_before | view->tid) < 0)
        return -EPROTO;
    return 1;
}

void ring_count_unsaved(const struct ring *ring, struct ring_unsaved *unsaved)
{
    struct chunk_view view;
    *unsaved = (struct ring_unsaved){0};
    for (uint32_t i = 0; i < ring->chunk_count; i++)
        if (ring_look(ring, i, &view) > 0 && view.used && view.kind == CHUNK_EVENTS) {
            unsaved->chunks++;
            unsaved->bytes += view.used;
            unsaved->events += view.count;
        }
}

uint32_t ring_look_all(const struct ring *ring, struct chunk_view *views, uint32_t *bad)
{
    uint32_t used = 0;
    *bad = 0;
    for (uint32_t i = 0; i < ring->chunk_count; i++) {
        int found = ring_look(ring, i, &views[used]);
        if (found > 0)
            used++;
        else if (found < 0)
            ++*bad;
    }
    return used;
}

void ring_release(struct ring *ring, uint32_t index)
{
    struct chunk_header *chunk = &ring->chunks[index];
    RING_TEST_POINT(before_release);
    store(chunk->published, 0, relaxed);
    RING_TEST_POINT(after_unpublish);
    store(chunk->state, CHUNK_FREE, release);
    RING_TEST_POINT(after_free);
    add(ring->header->freed, 1, release);
}
