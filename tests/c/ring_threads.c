/* Many producer threads, coming and going, and one dumper: every record once, in order, or told as
 * lost. Everything goes through one mapping, so that a thread sanitizer sees both sides.
 */
#include "ring_test.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 6
#define STREAMS 4      /* that each thread opens, one after the other */
#define RECORDS 20000  /* in each */

static struct ring ring;
static uint32_t process;
static _Atomic int running = THREADS;

struct producer {
    uint32_t ids[STREAMS];
    uint64_t stored[STREAMS];
    uint64_t dropped[STREAMS];
};

static void wait_for_pass(void)
{
    uint64_t passes = ring_dumper_passes(&ring);
    while (ring_dumper_passes(&ring) == passes)
        sched_yield();
}

static void *run_producer(void *argument)
{
    struct producer *producer = argument;
    for (int i = 0; i < STREAMS; i++) {
        struct stream stream;
        stream_open(&stream, &ring, process, 1, i % 2 ? CHUNK_EVENTS : CHUNK_DEFINITIONS);
        producer->ids[i] = stream.id;
        for (uint64_t number = 0; number < RECORDS; number++) {
            if (produce(&stream, number))
                producer->stored[i]++;
            else if (++producer->dropped[i] % 50 == 0)
                wait_for_pass(); /* else next to nothing would be stored */
        }
        stream_close(&stream);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

#ifdef __SANITIZE_THREAD__
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "halt_on_error=1"; /* the first tells enough */
}
#endif

/* Makes the windows wide that are a few instructions long: others meet what is half done. */
static void linger(const char *name)
{
    if (!strcmp(name, "after_free") || !strcmp(name, "after_claim") || !strcmp(name, "after_unpublish"))
        for (int i = 0; i < 4; i++)
            sched_yield();
}

int main(void)
{
    static struct producer producers[THREADS];
    struct store *store = make_store();
    pthread_t threads[THREADS];

    ring_test_point = linger;
    make_ring(&ring, 32 * RING_MIN_CHUNK_SIZE);
    process = (uint32_t)ring_process_register(&ring, 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_producer, &producers[i]), 0);
    for (uint64_t pass = 0; running; pass++)
        dump(&ring, store, pass % 4 == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    dump(&ring, store, false);
    CHECK_EQUAL(chunks_in_use(&ring), 0);

    uint64_t stored = 0, dropped = 0;
    store_sort(store);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < STREAMS; j++) {
            struct producer *producer = &producers[i];
            struct found found = check_stream(store, producer->ids[j]);
            CHECK_EQUAL(found.stored, producer->stored[j]);
            /* What a stream dropped after its last stored record, only the process's count
             * tells. */
            CHECK(found.lost <= producer->dropped[j]);
            CHECK_EQUAL(producer->stored[j] + producer->dropped[j], RECORDS);
            stored += found.stored;
            dropped += producer->dropped[j];
        }
    CHECK(stored > 4 * dropped);
    CHECK_EQUAL(dropped, ring_process_lost(&ring, process));
    printf("%llu stored, %llu dropped, %llu passes\n", (unsigned long long)stored, (unsigned long long)dropped,
           (unsigned long long)ring_dumper_passes(&ring));
    ring_detach(&ring);
    return 0;
}
