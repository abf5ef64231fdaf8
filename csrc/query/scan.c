/* Scanning segments; see scan.h.
 *
 * A `task` is one segment on its way: fetched (by the caller's thread), then processed (by any
 * thread: decompressed, and its rows found), then open (its rows are merged with those of others),
 * then reused for another segment. Threads meet at one mutex, a few times a segment.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "query/scan.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "common/array.h"
#include "query/scan_segment.h"

#define ALONE 2                  /* segments looked through before other threads help */
#define THREADS_MAX 15           /* besides the caller's */

struct worker {
    pthread_t thread;
    struct scan *scan;
    struct lens lens;
};

struct scan {
    struct segment_search search;
    struct scan_segment *segments;
    size_t count, fetched, opened;  /* segments: all; up to which they are fetched; opened */
    bool descending, whole;         /* whole: `count` is of all */
    struct scan_calls calls;
    struct lens lens;               /* the caller's thread's */
    int error;

    struct task **ahead;            /* of segments opened .. fetched - 1, at index modulo window */
    size_t window;
    struct task **open;             /* a heap: the one whose next row comes first is at the top */
    size_t open_count, open_capacity;
    struct task *current;           /* whose row was handed out last */
    struct task *unused;

    struct worker *workers;
    uint32_t worker_count;
    pthread_mutex_t mutex;          /* the queue, `done` of tasks, stopping */
    pthread_cond_t queued, finished;
    struct task *queue_head, *queue_tail;
    bool stopping;
};

/* ---- threads ----------------------------------------------------------------------------- */

static struct task *take_queued(struct scan *scan)
{
    struct task *task = scan->queue_head;
    if (task) {
        scan->queue_head = task->next;
        task->next = NULL;
    }
    return task;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct scan *scan = worker->scan;

    pthread_mutex_lock(&scan->mutex);
    while (!scan->stopping) {
        struct task *task = take_queued(scan);
        if (!task) {
            pthread_cond_wait(&scan->queued, &scan->mutex);
            continue;
        }
        pthread_mutex_unlock(&scan->mutex);
        segment_process(&scan->search, &worker->lens, task);
        pthread_mutex_lock(&scan->mutex);
        task->done = true;
        pthread_cond_signal(&scan->finished);
    }
    pthread_mutex_unlock(&scan->mutex);
    return NULL;
}

/* Starts a thread for each processor besides this one's. If none can be started, this thread does
 * all the work. */
static void start_workers(struct scan *scan)
{
    cpu_set_t processors;
    sigset_t all, before;
    int wanted = sched_getaffinity(0, sizeof processors, &processors) ? 0 : CPU_COUNT(&processors) - 1;

    if (wanted > THREADS_MAX)
        wanted = THREADS_MAX;
    if (scan->workers || wanted <= 0 || !(scan->workers = calloc((size_t)wanted, sizeof *scan->workers)))
        return;
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (scan->worker_count < (uint32_t)wanted) {
        struct worker *worker = &scan->workers[scan->worker_count];
        worker->scan = scan;
        if (pthread_create(&worker->thread, NULL, work, worker))
            break;
        scan->worker_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop_workers(struct scan *scan)
{
    pthread_mutex_lock(&scan->mutex);
    scan->stopping = true;
    pthread_cond_broadcast(&scan->queued);
    pthread_mutex_unlock(&scan->mutex);
    for (uint32_t i = 0; i < scan->worker_count; i++)
        pthread_join(scan->workers[i].thread, NULL);
}

/* Returns when the task has been processed; until then this thread works on the queue. */
static void await(struct scan *scan, struct task *task)
{
    pthread_mutex_lock(&scan->mutex);
    while (!task->done) {
        struct task *queued = take_queued(scan);
        if (!queued) {
            pthread_cond_wait(&scan->finished, &scan->mutex);
            continue;
        }
        pthread_mutex_unlock(&scan->mutex);
        segment_process(&scan->search, &scan->lens, queued);
        pthread_mutex_lock(&scan->mutex);
        queued->done = true;
    }
    pthread_mutex_unlock(&scan->mutex);
}

/* ---- fetching ahead ---------------------------------------------------------------------- */

static struct task *task_new(struct scan *scan, const struct scan_segment *segment)
{
    struct task *task = scan->unused;
    if (task)
        scan->unused = task->next;
    else if (!(task = calloc(1, sizeof *task)))
        return NULL;
    task->next = NULL;
    task->segment = segment;
    task->done = task->no_memory = false;
    task->reason = NULL;
    task->row_count = task->read = task->passed = 0;
    task->data_size = task->open_size = task->body_size = 0;
    return task;
}

static void task_done_with(struct scan *scan, struct task *task)
{
    task->next = scan->unused;
    scan->unused = task;
}

static void task_free(struct task *task)
{
    if (!task)
        return;
    free(task->data);
    free(task->body);
    free(task->rows);
    free(task);
}

static int fetch(struct scan *scan, struct task *task)
{
    struct scan_data data = {0};
    int answer = scan->calls.fetch(scan->calls.context, task->segment, &data);

    if (answer <= 0) {
        task->done = true;
        return answer;
    }
    /* a byte more, so that a segment without data has an address, too */
    if (!array_reserve(&task->data, &task->data_capacity, data.data_size + data.open_size + 1, 1))
        return SCAN_NO_MEMORY;
    if (data.data_size)
        memcpy(task->data, data.data, data.data_size);
    if (data.open_size)
        memcpy(task->data + data.data_size, data.open, data.open_size);
    task->data_size = data.data_size;
    task->open_size = data.open_size;
    task->size = data.size;
    task->base_depth = data.base_depth;
    return 1;
}

/* Whether there is a segment of this number: 1, 0, or an error. */
static int has_segment(struct scan *scan, size_t number)
{
    while (number >= scan->count && !scan->whole) {
        int answer = scan->calls.more(scan->calls.list, &scan->count);
        if (answer < 0)
            return answer;
        scan->whole = !answer;
    }
    return number < scan->count;
}

/* Fetches segments until enough are ahead. */
static int fetch_ahead(struct scan *scan)
{
    size_t wanted = 1;
    int is_there = scan->opened >= ALONE ? has_segment(scan, scan->opened + 1) : 0;

    if (is_there > 0) {
        start_workers(scan);
        if (scan->worker_count)
            wanted = 3 * (scan->worker_count + 1);
    }
    while (is_there >= 0 && scan->fetched - scan->opened < wanted &&
           (is_there = has_segment(scan, scan->fetched)) > 0) {
        struct task *task = task_new(scan, &scan->segments[scan->fetched]);
        if (!task)
            return SCAN_NO_MEMORY;
        scan->ahead[scan->fetched++ % scan->window] = task;
        int answer = fetch(scan, task);
        if (answer < 0)
            return answer;
        if (!answer)
            continue;
        pthread_mutex_lock(&scan->mutex);
        if (scan->queue_head)
            scan->queue_tail->next = task;
        else
            scan->queue_head = task;
        scan->queue_tail = task;
        pthread_cond_signal(&scan->queued);
        pthread_mutex_unlock(&scan->mutex);
    }
    return is_there < 0 ? is_there : 0;
}

/* ---- merging ----------------------------------------------------------------------------- */

static const struct scan_row *row_of(const struct scan *scan, const struct task *task)
{
    return &task->rows[scan->descending ? task->row_count - 1 - task->passed : task->passed];
}

/* Whether a's next row comes before b's. */
static bool comes_first(const struct scan *scan, const struct task *a, const struct task *b)
{
    int64_t first = row_of(scan, a)->time, second = row_of(scan, b)->time;
    if (first != second)
        return scan->descending ? first > second : first < second;
    return scan->descending ? a->segment->id > b->segment->id : a->segment->id < b->segment->id;
}

static void sift_down(struct scan *scan)
{
    struct task **heap = scan->open, *task = heap[0];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < scan->open_count) {
        if (child + 1 < scan->open_count && comes_first(scan, heap[child + 1], heap[child]))
            child++;
        if (!comes_first(scan, heap[child], task))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = task;
}

static int push(struct scan *scan, struct task *task)
{
    size_t at = scan->open_count;

    if (!array_reserve(&scan->open, &scan->open_capacity, at + 1, sizeof *scan->open))
        return SCAN_NO_MEMORY;
    scan->open_count++;
    while (at && comes_first(scan, task, scan->open[(at - 1) / 2])) {
        scan->open[at] = scan->open[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    scan->open[at] = task;
    return 0;
}

/* Adds the next segment to the merged ones. */
static int open_next(struct scan *scan)
{
    int error = fetch_ahead(scan);
    if (error < 0)
        return error;
    struct task *task = scan->ahead[scan->opened % scan->window];
    await(scan, task);
    scan->opened++;
    if (task->no_memory) {
        task_done_with(scan, task);
        return SCAN_NO_MEMORY;
    }
    if (task->reason)
        scan->calls.damaged(scan->calls.context, task->segment, task->read, task->reason);
    if (task->row_count)
        return push(scan, task);
    task_done_with(scan, task);
    return 0;
}

/* Whether a segment that is not open yet may have an event before the first of the open ones: 1, 0,
 * or an error. */
static int must_open(struct scan *scan)
{
    int is_there = has_segment(scan, scan->opened);

    if (is_there <= 0 || !scan->open_count)
        return is_there;
    const struct scan_segment *next = &scan->segments[scan->opened];
    int64_t time = row_of(scan, scan->open[0])->time;
    return scan->descending ? next->end >= time : next->start <= time;
}

int scan_next(struct scan *scan, struct scan_at *at)
{
    struct task *task = scan->current;

    if (scan->error < 0)
        return scan->error;
    if (task) { /* the top of the heap */
        if (++task->passed == task->row_count) {
            scan->open[0] = scan->open[--scan->open_count];
            task_done_with(scan, task);
        }
        if (scan->open_count > 1)
            sift_down(scan);
        scan->current = NULL;
    }
    int more;
    while ((more = must_open(scan)) > 0)
        if ((more = open_next(scan)) < 0)
            break;
    if ((scan->error = more) < 0)
        return more;
    if (!scan->open_count)
        return 0;
    scan->current = task = scan->open[0];
    *at = (struct scan_at){.segment = task->segment,
                           .row = row_of(scan, task),
                           .body = task->body,
                           .body_size = task->body_size,
                           .base_depth = task->base_depth};
    return 1;
}

/* ---- the whole --------------------------------------------------------------------------- */

static int by_start(const void *left, const void *right)
{
    const struct scan_segment *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int by_end(const void *left, const void *right)
{
    const struct scan_segment *a = left, *b = right;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    return a->id > b->id ? -1 : a->id < b->id;
}

struct scan *scan_new(const struct predicate *predicate, struct scan_segment *segments, size_t count,
                      bool descending, bool levels, const struct scan_calls *calls)
{
    struct scan *scan = calloc(1, sizeof *scan);
    if (!scan)
        return NULL;
    scan->window = 3 * (THREADS_MAX + 1);
    scan->ahead = calloc(scan->window, sizeof *scan->ahead);
    if (!scan->ahead) {
        free(scan);
        return NULL;
    }
    scan->search.predicate = predicate;
    scan->search.levels = levels || (predicate && predicate_asks_levels(predicate));
    scan->search.times = scan->search.ids = (struct bounds){INT64_MIN, INT64_MAX};
    if (predicate) {
        scan->search.times = predicate_bounds(predicate, FIELD_TIME);
        scan->search.ids = predicate_bounds(predicate, FIELD_ID);
        predicate_required_literals(predicate, &scan->search.literals);
    }
    scan->segments = segments;
    scan->count = count;
    scan->descending = descending;
    scan->calls = *calls;
    scan->whole = !calls->more;
    pthread_mutex_init(&scan->mutex, NULL); /* neither can fail with default attributes on Linux */
    pthread_cond_init(&scan->queued, NULL);
    pthread_cond_init(&scan->finished, NULL);
    if (count > 1 && scan->whole)
        qsort(segments, count, sizeof *segments, descending ? by_end : by_start);
    return scan;
}

void scan_free(struct scan *scan)
{
    if (!scan)
        return;
    stop_workers(scan);
    for (uint32_t i = 0; i < scan->worker_count; i++)
        lens_free(&scan->workers[i].lens);
    free(scan->workers);
    lens_free(&scan->lens);
    for (size_t i = scan->opened; i < scan->fetched; i++)
        task_free(scan->ahead[i % scan->window]);
    for (size_t i = 0; i < scan->open_count; i++)
        task_free(scan->open[i]);
    while (scan->unused) {
        struct task *task = scan->unused;
        scan->unused = task->next;
        task_free(task);
    }
    free(scan->ahead);
    free(scan->open);
    pthread_cond_destroy(&scan->finished);
    pthread_cond_destroy(&scan->queued);
    pthread_mutex_destroy(&scan->mutex);
    free(scan);
}

size_t scan_opened(const struct scan *scan) { return scan->opened; }

/* All events before the start of the next segment have been handed out: must_open. */
int64_t scan_reached(const struct scan *scan)
{
    if (scan->opened == scan->count)
        return scan->descending ? INT64_MAX : INT64_MIN;
    const struct scan_segment *next = &scan->segments[scan->opened];
    return scan->descending ? next->end : next->start;
}
