/* Creating, attaching, the dumper's lock, permissions; and files that are no ring. */
#include "ring_test.h"
#include "common/feature.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#define BUFFER (8u * RING_MIN_CHUNK_SIZE)

static int attach(struct ring *ring, enum ring_role role)
{
    int lock, error = ring_attach(ring, ring_path, role, &lock);
    CHECK(role == RING_DUMPER ? (lock >= 0) == !error : lock == -1);
    if (error)
        CHECK(!ring->header && !ring->chunks && !ring->bodies);
    if (lock >= 0)
        close(lock);
    return error;
}

/* Attaching fails for every role, with the same answer. */
static void check_refused(int error)
{
    struct ring ring;
    for (enum ring_role role = RING_PRODUCER; role <= RING_READER; role++)
        CHECK_EQUAL(attach(&ring, role), error);
}

static void test_sizes(void)
{
    CHECK_EQUAL(ring_chunk_size(0), 0);
    CHECK_EQUAL(ring_chunk_size(4 * (64 << 10) - 1), 0);
    CHECK_EQUAL(ring_chunk_size(4 * (64 << 10)), 64 << 10);
    CHECK_EQUAL(ring_chunk_size(16 << 20), 64 << 10);
    CHECK_EQUAL(ring_chunk_size(32 << 20), 128 << 10);
    CHECK_EQUAL(ring_chunk_size((64 << 20) - 1), 128 << 10);
    CHECK_EQUAL(ring_chunk_size(64 << 20), 256 << 10);
    CHECK_EQUAL(ring_chunk_size(UINT64_C(1) << 40), 256 << 10);
}

static void test_create(void)
{
    struct ring ring;
    struct stat status;
    static const char settings[] = "ONE=1\0TWO=2"; /* and the NUL that ends the array */

    umask(0777);
    CHECK_EQUAL(ring_create(ring_path, BUFFER + 1000, settings, sizeof settings), 0);
    umask(022);
    CHECK_EQUAL(stat(ring_path, &status), 0);
    CHECK_EQUAL(status.st_mode, S_IFREG | 0600);
    CHECK(status.st_blocks * 512 >= status.st_size); /* really allocated */
    CHECK_EQUAL(ring_create(ring_path, BUFFER, "", 0), -EEXIST);
    CHECK_EQUAL(attach(&ring, RING_READER), 0);
    CHECK_EQUAL(ring.chunk_count, 8);
    CHECK_EQUAL(ring.header->size, status.st_size);
    CHECK_EQUAL(ring.header->settings_size, sizeof settings);
    CHECK_EQUAL(ring_features(&ring), FEATURES_MADE);
    CHECK(!memcmp(ring.header->settings, settings, sizeof settings));
    CHECK(!memcmp((void *)&ring.header->magic, "pytrace\1", 8) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
    CHECK_EQUAL(chunks_in_use(&ring), 0);
    ring_detach(&ring);
    ring_detach(&ring); /* once more: nothing */
    remove_ring();
}

static void test_create_fails(void)
{
    static char settings[RING_SETTINGS_SIZE + 1];
    char link_target[300];
    struct statvfs room;
    struct rlimit limit, low;

    CHECK_EQUAL(ring_create(ring_path, 4 * RING_MIN_CHUNK_SIZE - 1, "", 0), -EINVAL);
    CHECK_EQUAL(ring_create(ring_path, UINT64_MAX, "", 0), -EINVAL);
    CHECK_EQUAL(ring_create(ring_path, BUFFER, settings, sizeof settings), -E2BIG);
    CHECK_EQUAL(ring_create(ring_path, BUFFER, "A=1", 3), -EINVAL); /* its NUL is not in it */
    CHECK_EQUAL(ring_create("/nowhere/ring", BUFFER, "", 0), -ENOENT);
    CHECK_EQUAL(access(ring_path, F_OK), -1);

    CHECK_EQUAL(ring_create(ring_path, BUFFER, settings, RING_SETTINGS_SIZE), 0);
    remove_ring();

    /* A link is not followed, even to nothing. */
    snprintf(link_target, sizeof link_target, "%s-target", ring_path);
    CHECK_EQUAL(symlink(link_target, ring_path), 0);
    CHECK_EQUAL(ring_create(ring_path, BUFFER, "", 0), -EEXIST);
    CHECK_EQUAL(access(link_target, F_OK), -1);
    remove_ring();

    /* No room: nothing is left behind. */
    CHECK_EQUAL(statvfs("/dev/shm", &room), 0);
    uint64_t all = (uint64_t)room.f_blocks * room.f_frsize + (1 << 20);
    if (room.f_blocks && all / RING_MAX_CHUNK_SIZE <= RING_MAX_CHUNKS) {
        char path[64];
        snprintf(path, sizeof path, "/dev/shm/pytrace-test-%d-large", (int)getpid());
        CHECK_EQUAL(ring_create(path, all, "", 0), -ENOSPC);
        CHECK_EQUAL(access(path, F_OK), -1);
    }
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQUAL(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = limit;
    low.rlim_cur = BUFFER / 2;
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &low), 0);
    CHECK_EQUAL(ring_create(ring_path, BUFFER, "", 0), -EFBIG);
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQUAL(access(ring_path, F_OK), -1);
}

static void test_no_file(void)
{
    char target[300];
    check_refused(-ENOENT);
    CHECK_EQUAL(ring_has_dumper(ring_path), -ENOENT);

    CHECK_EQUAL(mkfifo(ring_path, 0600), 0);
    check_refused(-EPROTO);
    remove_ring();

    snprintf(target, sizeof target, "%s-target", ring_path);
    CHECK_EQUAL(ring_create(target, BUFFER, "", 0), 0);
    CHECK_EQUAL(symlink(target, ring_path), 0);
    check_refused(-ELOOP);
    CHECK_EQUAL(ring_has_dumper(ring_path), -ELOOP);
    remove_ring();
    if (geteuid() == 0) { /* only root can make a file another's */
        CHECK_EQUAL(chown(target, 65534, (gid_t)-1), 0);
        CHECK_EQUAL(rename(target, ring_path), 0);
        check_refused(-EPERM);
        CHECK_EQUAL(ring_has_dumper(ring_path), -EPERM);
        remove_ring();
    }
    unlink(target);
}

static void test_wrong_length(void)
{
    struct stat status;
    struct ring ring;
    CHECK_EQUAL(ring_create(ring_path, BUFFER, "", 0), 0);
    CHECK_EQUAL(stat(ring_path, &status), 0);
    for (int i = 0; i < 5; i++) {
        const off_t lengths[] = {0, 8, sizeof(struct ring_header), status.st_size - 1, status.st_size + 1};
        CHECK_EQUAL(truncate(ring_path, lengths[i]), 0);
        check_refused(-EPROTO);
    }
    CHECK_EQUAL(truncate(ring_path, status.st_size), 0); /* all zeros now */
    check_refused(-EPROTO);
    CHECK_EQUAL(attach(&ring, RING_READER), -EPROTO);
    remove_ring();
}

static void test_hostile_header(void)
{
    struct ring ring, other;
    CHECK_EQUAL(ring_create(ring_path, BUFFER, "A=1", 4), 0);
    CHECK_EQUAL(attach(&ring, RING_PRODUCER), 0);
    struct ring_header *header = ring.header;
    size_t constants = offsetof(struct ring_header, next_stream);
    char good[256];
    CHECK(constants <= sizeof good);
    memcpy(good, (void *)header, constants);

#define HOSTILE(change) do { \
        change; \
        check_refused(-EPROTO); \
        memcpy((void *)header, good, constants); \
        CHECK_EQUAL(attach(&other, RING_READER), 0); \
        ring_detach(&other); \
    } while (0)

    HOSTILE(header->magic = 0);
    HOSTILE(header->magic ^= 1);
    HOSTILE(header->version++);
    HOSTILE(header->features |= UINT64_C(1) << 40); /* a reader must know it */
    HOSTILE(header->chunk_size = 0);
    HOSTILE(header->chunk_size = RING_MIN_CHUNK_SIZE / 2; header->chunk_count *= 2);
    HOSTILE(header->chunk_size = RING_MAX_CHUNK_SIZE * 2; header->chunk_count /= 8);
    HOSTILE(header->chunk_size = RING_MIN_CHUNK_SIZE * 2);
    HOSTILE(header->chunk_size = 96 << 10);
    HOSTILE(header->chunk_count = 0);
    HOSTILE(header->chunk_count = RING_MIN_CHUNKS - 1);
    HOSTILE(header->chunk_count++);
    HOSTILE(header->chunk_count = UINT32_MAX);
    HOSTILE(header->small_count = 1);
    HOSTILE(header->small_count = header->chunk_count);
    HOSTILE(header->small_count = UINT32_MAX);
    HOSTILE(header->size++);
    HOSTILE(header->size = UINT64_MAX);
    HOSTILE(header->bodies_offset += 4096);
    HOSTILE(header->bodies_offset = 0);
    HOSTILE(header->clock_kind = 0);
    HOSTILE(header->clock_kind = 3);
    HOSTILE(header->clock_shift = 64);
    HOSTILE(header->settings_size = RING_SETTINGS_SIZE + 1);
    HOSTILE(header->settings_size--); /* cuts the NUL off */
    ring_detach(&ring);
    remove_ring();
}

/* A system call's answer tells whether memory may be written, without a signal. */
static bool writable(void *address)
{
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    CHECK(zero >= 0);
    ssize_t size = read(zero, address, 1);
    CHECK(size == 1 || errno == EFAULT);
    close(zero);
    return size == 1;
}

static void test_roles(void)
{
    static const struct { enum ring_role role; bool headers, bodies; } expected[] = {
        {RING_PRODUCER, true, true}, {RING_DUMPER, true, false}, {RING_READER, false, false},
    };
    CHECK_EQUAL(ring_create(ring_path, BUFFER, "", 0), 0);
    for (int i = 0; i < 3; i++) {
        struct ring ring;
        CHECK_EQUAL(attach(&ring, expected[i].role), 0);
        CHECK_EQUAL(writable(ring.header->message), expected[i].headers);
        CHECK_EQUAL(writable(&ring.chunks[0].unused_[0]), expected[i].headers);
        CHECK_EQUAL(writable(ring.bodies), expected[i].bodies);
        CHECK_EQUAL(writable(ring.bodies + BUFFER - 1), expected[i].bodies);
        ring_detach(&ring);
    }
    remove_ring();
}

static void test_dumper_lock(void)
{
    struct ring ring, second;
    int lock, no_lock;
    int *ready = share(sizeof *ready), pipe_fd[2];
    char byte;

    CHECK_EQUAL(ring_create(ring_path, BUFFER, "", 0), 0);
    CHECK_EQUAL(ring_has_dumper(ring_path), 0);
    CHECK_EQUAL(ring_attach(&ring, ring_path, RING_DUMPER, &lock), 0);
    CHECK_EQUAL(ring_has_dumper(ring_path), 1); /* also in the process that holds it */
    CHECK_EQUAL(ring_attach(&second, ring_path, RING_DUMPER, &no_lock), -EBUSY);
    CHECK_EQUAL(no_lock, -1);
    CHECK_EQUAL(ring.header->dumper_pid, getpid());
    CHECK(fcntl(lock, F_GETFD) & FD_CLOEXEC);
    uint64_t freed = ring.header->freed;
    ring_detach(&ring);
    CHECK_EQUAL(ring_has_dumper(ring_path), 1); /* the descriptor holds it, not the mapping */
    close(lock);
    CHECK_EQUAL(ring_has_dumper(ring_path), 0);

    /* It goes with its process. */
    CHECK_EQUAL(pipe(pipe_fd), 0);
    pid_t pid = fork();
    if (!pid) {
        *ready = ring_attach(&ring, ring_path, RING_DUMPER, &lock) == 0;
        CHECK_EQUAL(write(pipe_fd[1], "x", 1), 1);
        for (;;)
            pause();
    }
    CHECK_EQUAL(read(pipe_fd[0], &byte, 1), 1);
    CHECK(*ready);
    CHECK_EQUAL(ring_has_dumper(ring_path), 1);
    CHECK_EQUAL(attach(&second, RING_DUMPER), -EBUSY);
    kill(pid, SIGKILL);
    wait_for(pid);
    CHECK_EQUAL(ring_has_dumper(ring_path), 0);
    CHECK_EQUAL(attach(&second, RING_DUMPER), 0);
    CHECK_EQUAL(second.header->freed, freed + 2); /* each makes producers look again */
    ring_detach(&second);
    remove_ring();
}

static void test_message(void)
{
    struct ring ring;
    static char text[RING_MESSAGE_SIZE * 2];
    CHECK_EQUAL(ring_create(ring_path, BUFFER, "", 0), 0);
    CHECK_EQUAL(attach(&ring, RING_DUMPER), 0);
    CHECK_EQUAL(ring_dumper_state(&ring), DUMPER_STARTING);
    ring_dumper_say(&ring, DUMPER_REFUSED, "no room");
    CHECK_EQUAL(ring_dumper_state(&ring), DUMPER_REFUSED);
    CHECK(!strcmp(ring.header->message, "no room"));

    /* Cut where a character ends: 3 bytes each, so that 4095 bytes are 1365 of them. */
    for (size_t i = 0; i + 3 < sizeof text; i += 3)
        memcpy(text + i, "\u20ac", 3);
    ring_dumper_say(&ring, DUMPER_READY, text);
    CHECK_EQUAL(strlen(ring.header->message), RING_MESSAGE_SIZE - 1);
    ring_dumper_say(&ring, DUMPER_READY, text + 3 - 1); /* begins with the end of one */
    CHECK_EQUAL(strlen(ring.header->message), RING_MESSAGE_SIZE - 3);
    ring_dumper_say(&ring, DUMPER_FINISHED, "");
    CHECK_EQUAL(strlen(ring.header->message), 0);
    ring_dumper_pass_ended(&ring);
    CHECK_EQUAL(ring_dumper_passes(&ring), 1);
    CHECK_EQUAL(ring_next_number(&ring), 1);
    CHECK_EQUAL(ring_next_number(&ring), 2);
    ring_detach(&ring);
    remove_ring();
}

/* How many of twenty processes that ask at the same time are to start a dumper. */
static int elected(struct ring *ring, uint64_t interval_ns)
{
    int go[2], count = 0;
    pid_t pids[20];
    char byte;
    CHECK_EQUAL(pipe(go), 0);
    for (int i = 0; i < 20; i++) {
        pids[i] = fork();
        if (!pids[i]) {
            close(go[1]);
            CHECK_EQUAL(read(go[0], &byte, 1), 0); /* until all are there */
            _exit(ring_dumper_elect(ring, interval_ns));
        }
    }
    close(go[0]);
    close(go[1]);
    for (int i = 0; i < 20; i++)
        count += WEXITSTATUS(wait_for(pids[i]));
    return count;
}

static void test_election(void)
{
    const uint64_t hour = 3600000000000u, ms = 1000000u;
    struct ring ring;
    make_ring(&ring, BUFFER);
    CHECK_EQUAL(elected(&ring, hour), 1);
    CHECK_EQUAL(elected(&ring, hour), 0); /* it is about to */
    while (!ring_dumper_elect(&ring, ms)) /* it has died, and another one does it */
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    CHECK_EQUAL(ring.header->dumper_start & 0xff, 2);
    CHECK(!ring_dumper_elect(&ring, hour));
    ring_dumper_pass_ended(&ring); /* now there is a dumper; the next time is another matter */
    CHECK_EQUAL(elected(&ring, hour), 1);
    ring.header->dumper_start = UINT64_MAX; /* written over */
    CHECK(ring_dumper_elect(&ring, hour));
    CHECK(!ring_dumper_elect(&ring, hour));
    ring_detach(&ring);
    remove_ring();
}

int main(void)
{
    name_ring();
    test_sizes();
    test_create();
    test_create_fails();
    test_no_file();
    test_wrong_length();
    test_hostile_header();
    test_roles();
    test_dumper_lock();
    test_message();
    test_election();
    return 0;
}
