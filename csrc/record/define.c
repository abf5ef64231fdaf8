/* Definitions; see define.h. */

#include "record/define.h"

#include <pthread.h>
#include <unistd.h>

#include "common/map.h"
#include "format/event.h"
#include "record/stats.h"
#include "record/text.h"

static struct stream definitions; /* ring == NULL: nothing is recorded */

/* Native functions are defined without the GIL. Held from define_begin until the definition is
 * written, or given up. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void define_open(struct ring *ring, uint32_t process)
{
    pthread_mutex_lock(&lock);
    stream_open(&definitions, ring, process, 0, CHUNK_DEFINITIONS);
    pthread_mutex_unlock(&lock);
}

void define_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    stream_abandon(&definitions);
}

void define_close(void)
{
    pthread_mutex_lock(&lock);
    if (definitions.ring != NULL)
        stream_close(&definitions);
    pthread_mutex_unlock(&lock);
}

void define_give_back(void)
{
    static uint64_t seen;
    pthread_mutex_lock(&lock);
    uint64_t now = (uint64_t)definitions.sequence << 32 | definitions.count;
    if (definitions.ring != NULL && now == seen)
        stream_close(&definitions);
    seen = now;
    pthread_mutex_unlock(&lock);
}

/* Writes in place: a buffer on the stack would be more pages for a forked child to copy. */
uint8_t *define_text(uint8_t *p, int field, PyObject *object, size_t size)
{
    uint8_t *text = wire_open(p, field);
    return wire_close(text, text + text_of((char *)text, size, object));
}

uint8_t *define_begin(struct definition_writer *writer, enum definition_kind kind, size_t size)
{
    pthread_mutex_lock(&lock);
    uint8_t *p = NULL;
    /* Ask first: a definition without a chunk is no lost event. It is tried again at the next
     * event. */
    if (definitions.ring != NULL &&
        ((size_t)(definitions.end - definitions.next) >= size || stream_claim(&definitions, size)))
        p = stream_reserve(&definitions, size);
    if (p == NULL) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    definition_open(writer, p, kind);
    return writer->fields;
}

static void define_end(const struct definition_writer *writer, uint8_t *end, uint32_t number)
{
    stream_commit(&definitions, definition_close(writer, end, number));
    pthread_mutex_unlock(&lock);
}

/* The number in the recording of a definition that this process does not know. */
static uint32_t define_new(const struct definition_writer *writer, uint8_t *end, uint64_t hash)
{
    uint32_t number = ring_known_find(definitions.ring, hash);
    if (number)
        pthread_mutex_unlock(&lock);
    else
        define_end(writer, end, number = ring_next_number(definitions.ring));
    return number;
}

/* Numbers by the 64-bit hash of the definition: a program that makes the same function again and
 * again (eval, namedtuple) gets one definition of it, so that definitions do not grow without
 * end. */
static struct map known;

uint32_t define_number(const struct definition_writer *writer, uint8_t *end)
{
    uint64_t hash = definition_hash(writer->kind, writer->fields, end);
    uint32_t number = (uint32_t)map_get(&known, hash);
    if (number) {
        STAT(definition_repeated);
        pthread_mutex_unlock(&lock);
        return number;
    }
    number = define_new(writer, end, hash);
    map_put(&known, hash, number); /* without memory it is defined again */
    return number;
}

uint32_t define_native(const struct definition_writer *writer, uint8_t *end)
{
    return define_new(writer, end, definition_hash(writer->kind, writer->fields, end));
}

bool define_thread(uint32_t stream, uint64_t tid, const char *name, size_t size)
{
    if (size > 1000)
        size = 1000;
    struct definition_writer writer;
    uint8_t *p = define_begin(&writer, DEFINITION_THREAD, size + 64);
    if (p == NULL)
        return false;
    p = event_put(p, 1, stream);
    p = event_put(p, 2, definitions.process);
    p = event_put(p, 3, tid);
    p = wire_put_bytes(p, 4, name, size);
    define_end(&writer, p, 0);
    return true;
}

bool define_process(uint32_t parent, const char *command, size_t size, const char *python)
{
    if (size > 16384)
        size = 16384;
    struct definition_writer writer;
    uint8_t *p = define_begin(&writer, DEFINITION_PROCESS, size + strlen(python) + 64);
    if (p == NULL)
        return false;
    p = event_put(p, 1, definitions.process);
    p = event_put(p, 2, (uint64_t)getpid());
    p = event_put(p, 3, parent);
    p = wire_put_bytes(p, 4, command, size);
    p = wire_put_bytes(p, 5, python, strlen(python));
    define_end(&writer, p, 0);
    return true;
}
