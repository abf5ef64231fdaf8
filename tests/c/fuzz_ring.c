/* Attaches to a ring in which arbitrary bytes were changed, as the dumper does, and uses all that
 * it uses. The input is a list of changes: where (a byte, see enum place), an offset (two bytes), a
 * length (one), and the bytes; a change of the file's length has 4 bytes for it. What must hold,
 * besides touching nothing that is not theirs: a file of another length is refused, and what is
 * shown of a chunk lies in it.
 */
#include "format/definitions.h"
#include "fuzz.h"

#include "query/run_definitions.h"
#include "ring/ring.h"
#include "format/summary.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum place { HEADER, SETTINGS, PROCESS, CHUNK, BODY, LENGTH, PLACES };

#define BUFFER (RING_MIN_CHUNKS * RING_MIN_CHUNK_SIZE)

static char path[64];
static uint8_t *image; /* of the ring as it was made */
static size_t image_size;

static void put_records(struct ring *ring, uint32_t process, enum chunk_kind kind)
{
    struct stream stream;
    stream_open(&stream, ring, process, 77, kind);
    for (uint32_t i = 0; i < 5; i++) {
        uint8_t *record = stream_reserve(&stream, EVENT_HEAD_MAX);
        CHECK(record);
        uint8_t *end = event_put(event_open(record, i % 2 ? EVENT_RETURN : EVENT_CALL, i + 1), EVENT_TIME, i);
        stream_commit(&stream, event_close(record, end));
    }
    if (kind == CHUNK_DEFINITIONS)
        stream_close(&stream); /* and one that is unfinished */
}

static void remove_ring(void)
{
    unlink(path);
}

static void make_ring(void)
{
    static const char settings[] = "output=/tmp/traces.sqlite\0max_size=1000000";
    struct ring ring;
    int lock;

    snprintf(path, sizeof path, "/dev/shm/pytrace-fuzz-%d", (int)getpid());
    CHECK(!ring_create(path, BUFFER, settings, sizeof settings));
    atexit(remove_ring);
    CHECK(!ring_attach(&ring, path, RING_PRODUCER, &lock));
    int process = ring_process_register(&ring, 0);
    CHECK(process == 0);
    put_records(&ring, 0, CHUNK_EVENTS);
    put_records(&ring, 0, CHUNK_DEFINITIONS);
    ring_detach(&ring);

    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    image_size = (size_t)lseek(fd, 0, SEEK_END);
    image = malloc(image_size);
    CHECK(image && pread(fd, image, image_size, 0) == (ssize_t)image_size);
    close(fd);
}

static size_t place_of(enum place place, size_t offset)
{
    size_t bodies = image_size - BUFFER;
    switch (place) {
    case HEADER:
        return offset % offsetof(struct ring_header, message);
    case SETTINGS:
        return offsetof(struct ring_header, settings) + offset % RING_SETTINGS_SIZE;
    case PROCESS: /* the first few are used */
        return offsetof(struct ring_header, processes) + offset % (4 * sizeof(struct ring_process));
    case CHUNK:
        return sizeof(struct ring_header) + offset % (RING_MIN_CHUNKS * sizeof(struct chunk_header));
    default: /* where the records are */
        return bodies + offset % RING_MIN_CHUNKS * RING_MIN_CHUNK_SIZE + offset / RING_MIN_CHUNKS % 200;
    }
}

/* Writes `size` bytes of the image again. */
static void restore(int fd, size_t at, size_t size)
{
    CHECK(pwrite(fd, image + at, size, (off_t)at) == (ssize_t)size);
}

/* The image with the changes, in the file. Returns the file's length. */
static size_t change(int fd, const uint8_t *data, size_t size)
{
    size_t length = image_size, bodies = image_size - BUFFER, settings = offsetof(struct ring_header, settings);

    CHECK(!ftruncate(fd, (off_t)image_size));
    restore(fd, 0, offsetof(struct ring_header, processes) + 8 * sizeof(struct ring_process));
    restore(fd, settings, bodies - settings);
    for (uint32_t chunk = 0; chunk < RING_MIN_CHUNKS; chunk++)
        restore(fd, bodies + chunk * RING_MIN_CHUNK_SIZE, 512);
    while (size >= 4) {
        enum place place = data[0] % PLACES;
        size_t offset = data[1] | (size_t)data[2] << 8, count = data[3];
        data += 4;
        size -= 4;
        count = count < size ? count : size;
        if (place == LENGTH) {
            length = count >= 4 ? (data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) : offset;
        } else {
            size_t at = place_of(place, offset);
            CHECK(pwrite(fd, data, at + count > image_size ? image_size - at : count, (off_t)at) >= 0);
        }
        data += count;
        size -= count;
    }
    CHECK(!ftruncate(fd, (off_t)length));
    return length;
}

static void check_settings(const struct ring *ring)
{
    size_t size, names = 0;
    const char *settings = ring_settings(ring, &size);
    CHECK(size <= RING_SETTINGS_SIZE && (!size || !settings[size - 1]));
    for (size_t at = 0; at < size; at += strlen(settings + at) + 1)
        names++;
    CHECK(names <= size && strnlen(ring_dumper_message(ring), RING_MESSAGE_SIZE) <= RING_MESSAGE_SIZE);
}

static void check_chunks(struct ring *ring)
{
    static struct summary_maker *maker;
    struct chunk_view views[RING_MIN_CHUNKS];
    struct summary summary;
    uint32_t bad, count = ring_look_all(ring, views, &bad);

    maker = maker ? maker : summary_maker_new();
    CHECK(maker && count + bad <= RING_MIN_CHUNKS);
    for (uint32_t i = 0; i < count; i++) {
        const struct chunk_view *view = &views[i];
        CHECK(view->index < RING_MIN_CHUNKS && view->process < RING_PROCESSES && view->used <= ring->chunk_size);
        CHECK(view->body == ring->bodies + (size_t)view->index * ring->chunk_size);
        struct definition found;
        const uint8_t *end = view->body + view->used;
        for (const uint8_t *p = view->body; (p = definition_next(p, end, &found)) != NULL;)
            if (found.number)
                ring_known_add(ring, found.hash, found.number);
        CHECK(summary_make(maker, view->body, view->used, view->base_depth, (const uint8_t *)"", 1,
                           &summary));
        ring_process_state(ring, view->process);
        ring_process_lost(ring, view->process);
        ring_release(ring, view->index);
        CHECK(ring_look(ring, view->index, &views[i]) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ring ring;
    int lock, fd;

    if (!image)
        make_ring();
    fd = open(path, O_RDWR);
    CHECK(fd >= 0);
    size_t length = change(fd, data, size);
    close(fd);
    int error = ring_attach(&ring, path, RING_DUMPER, &lock);
    CHECK(!error || error == -EPROTO);
    CHECK(error || length == image_size);
    CHECK(ring_has_dumper(path) == !error);
    if (error)
        return 0;
    CHECK(ring.chunk_count == RING_MIN_CHUNKS && ring.chunk_size == RING_MIN_CHUNK_SIZE);
    check_settings(&ring);
    check_chunks(&ring);
    for (uint32_t process = 0; process < 4; process++) {
        ring_process_alive(&ring, process);
        ring_process_replaced(&ring, process);
        ring_process_exit_status(&ring, process);
        ring_process_saved(&ring, process);
    }
    ring_now_ns(&ring);
    ring_dumper_say(&ring, DUMPER_READY, "");
    ring_dumper_say_so_far(&ring, "");
    int process = ring_process_register_program(&ring); /* as a child does */
    CHECK(process == -EXDEV || process == -ENOSPC || (process >= 0 && process < RING_PROCESSES));
    if (process > 0)
        memset(&ring.header->processes[process], 0, sizeof *ring.header->processes);
    ring_detach(&ring);
    close(lock);
    return 0;
}
