/* Scanning segments; see scan.h.
 *
 * A `task` is one segment on its way: fetched (by the caller's thread), then processed (by any thread:
 * decompressed, and its rows found), then open (its rows are merged with those of others), then used
 * for another segment. Threads meet at one mutex, a few times a segment.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "scan.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "zstd.h"

#define BODY_MAX (256 << 10)     /* no chunk is larger (RING_MAX_CHUNK_SIZE) */
#define ALONE 2                  /* segments that are looked through before other threads are asked to */
#define THREADS_MAX 15           /* besides the caller's */

/* What a thread needs for itself. */
struct lens {
    struct zstd_context *zstd;
    const struct run_definitions *run; /* whose segments it is for ... */
    const struct run_thread *thread;   /* ... and of which thread */
    uint32_t in_types;                 /* trails that the names of types have: a bit for each of the scan's */
    struct trails missing;             /* the others: records without them say no more than their code does */
    uint32_t found;                    /* trails that a segment has, or the types ... */
    bool hopeless;                     /* ... and no event of such a segment can meet the predicate */
    struct code_answers *answers;      /* by code number */
    size_t answers_count;
    uint32_t age;
};

/* What is known of a function's events, by kind. */
struct code_answers {
    uint32_t age; /* the lens's when these were given; those of another age count for nothing */
    uint8_t plain[EVENT_LOST + 1];     /* 1 + enum answer to a record without any trail; 0: not asked yet */
    uint8_t marked[EVENT_LOST + 1];    /* ... with one */
    const struct predicate *rests[EVENT_LOST + 1]; /* what is left of the predicate; NULL: not asked yet */
};

struct task {
    struct task *next;         /* in the queue, or among the free ones */
    const struct scan_segment *segment;
    bool done;
    /* what was fetched */
    uint8_t *data;
    size_t data_size, data_capacity;
    int64_t size;
    int32_t base_depth;
    /* what came out */
    uint8_t *body;
    size_t body_size, body_capacity;
    struct scan_row *rows;
    uint32_t row_count, row_capacity;
    uint32_t read;             /* events */
    const char *reason;        /* what is wrong with it, or NULL */
    bool no_memory;
    uint32_t passed;           /* rows handed out */
};

struct worker {
    pthread_t thread;
    struct scan *scan;
    struct lens lens;
};

struct scan {
    const struct predicate *predicate;
    struct trails trails;           /* the predicate's */
    struct scan_segment *segments;
    size_t count, fetched, opened;  /* segments: all; up to which they are fetched; opened */
    bool descending;
    struct scan_calls calls;
    struct lens lens;               /* the caller's thread's */
    int error;

    struct task **ahead;            /* tasks of segments opened .. fetched - 1, at index modulo window */
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

/* ---- one segment -------------------------------------------------------------------------- */

static bool grow(void *array, size_t *capacity, size_t needed, size_t element)
{
    if (needed <= *capacity)
        return true;
    size_t larger = *capacity * 2 > needed ? *capacity * 2 : needed;
    void *grown = realloc(*(void **)array, larger * element);
    if (!grown)
        return false;
    *(void **)array = grown;
    *capacity = larger;
    return true;
}

const char *scan_decompress(struct zstd_context *context, const struct scan_data *data, uint8_t **body,
                            size_t *capacity)
{
    const char *reason = NULL;
    if (data->size < 0 || data->size > BODY_MAX)
        return "no segment has that many bytes";
    if (!grow(body, capacity, (size_t)data->size + 1, 1))
        return "no memory to decompress it";
    long size = zstd_decompress(context, *body, (size_t)data->size + 1, data->data, data->data_size, &reason);
    if (size >= 0 && size != data->size)
        return "it has another size than it should";
    return reason;
}

void scan_row_of(const struct scan_segment *segment, const uint8_t *body, const struct segment_walk *walk,
                 const struct segment_event *event, struct scan_row *row)
{
    const struct segment_clock *clock = &segment->run->clock;
    *row = (struct scan_row){
        .time = segment_clock_ns(clock, event->time),
        .duration = event->has_duration ? segment_duration_ns(clock, event->duration) : -1,
        .index = event->index,
        .offset = (uint32_t)(event->record - body),
        .code = event->event.code,
        .line = event->event.line,
        .depth = event->depth,
        .kind = event->event.kind,
        .task = walk->task ? (uint32_t)(walk->task - body) : 0,
        .task_size = walk->task_size,
    };
}

void scan_facts(const struct scan_at *at, const struct event *event, struct facts *facts)
{
    const struct scan_segment *segment = at->segment;
    const struct scan_row *row = at->row;
    const struct run_code *code = run_code_find(segment->run, row->code);
    int64_t id = (int64_t)((uint64_t)segment->id << SCAN_INDEX_BITS) + row->index;
    int64_t line = row->line ? row->line : code->line;
    *facts = (struct facts){
        .id = {id, id},
        .time = {row->time, row->time},
        .depth = {row->depth, row->depth},
        .duration = {row->duration, row->duration},
        .has_duration = row->duration >= 0,
        .lacks_duration = row->duration < 0,
        .line = {line, line},
        .kinds = 1u << row->kind,
        .run = segment->run,
        .thread = segment->thread,
        .code = code,
        .task_known = true,
        .task = {(const char *)at->body + row->task, row->task_size},
        .event = event,
    };
}

/* The facts of all events of the segments that the lens is for. */
static struct facts facts_of(const struct lens *lens, const struct trails *missing)
{
    struct facts facts = facts_unknown;
    facts.run = lens->run;
    facts.thread = lens->thread;
    facts.missing = missing;
    return facts;
}

/* The facts of a function's events of a kind. */
static struct facts facts_of_code(const struct lens *lens, uint32_t number, enum event_kind kind,
                                  const struct trails *missing)
{
    struct facts facts = facts_of(lens, missing);
    facts.kinds = 1u << kind;
    facts.code = run_code_find(lens->run, number);
    return facts;
}

static void forget_rests(struct code_answers *answers)
{
    for (int kind = 0; kind <= EVENT_LOST; kind++)
        predicate_rest_free(answers->rests[kind]);
}

static void forget_answers(struct lens *lens)
{
    for (size_t i = 0; i < lens->answers_count; i++)
        forget_rests(&lens->answers[i]);
    free(lens->answers);
}

static struct code_answers *answers_of(const struct lens *lens, uint32_t number)
{
    /* one place for all that are not defined */
    struct code_answers *answers = &lens->answers[number < lens->run->code_count ? number : lens->run->code_count];
    if (answers->age != lens->age) {
        forget_rests(answers);
        *answers = (struct code_answers){.age = lens->age};
    }
    return answers;
}

/* The answer as far as function and kind give it; `plain`: of a record without any trail. */
static enum answer ask_code(const struct lens *lens, const struct scan *scan, uint32_t number, enum event_kind kind,
                            bool plain)
{
    struct code_answers *answers = answers_of(lens, number);
    uint8_t *answer = plain ? &answers->plain[kind] : &answers->marked[kind];

    if (!*answer) {
        struct facts facts = facts_of_code(lens, number, kind, plain ? &lens->missing : NULL);
        *answer = (uint8_t)(1 + predicate_ask(scan->predicate, &facts));
    }
    return (enum answer)(*answer - 1);
}

/* What is left of the predicate for these events. */
static const struct predicate *rest_of(const struct lens *lens, const struct scan *scan, uint32_t number,
                                       enum event_kind kind)
{
    struct code_answers *answers = answers_of(lens, number);

    if (!answers->rests[kind]) {
        struct facts facts = facts_of_code(lens, number, kind, NULL);
        answers->rests[kind] = predicate_rest(scan->predicate, &facts);
    }
    return answers->rests[kind] ? answers->rests[kind] : scan->predicate;
}

static bool types_have(const struct run_definitions *run, const struct trail *trail)
{
    for (uint32_t i = 0; i < run->type_count; i++)
        if (run->types[i] && trail_is_in(trail, (const uint8_t *)run->types[i], strlen(run->types[i])))
            return true;
    return false;
}

/* The trails that are not among those found. */
static void collect_missing(const struct scan *scan, uint32_t found, struct trails *missing)
{
    missing->count = 0;
    for (size_t i = 0; i < scan->trails.count; i++)
        if (!(found >> i & 1))
            missing->all[missing->count++] = scan->trails.all[i];
}

/* Makes the lens one for a segment. False: no memory. */
static bool lens_focus(struct lens *lens, const struct scan *scan, const struct scan_segment *segment)
{
    const struct run_definitions *run = segment->run;

    if (lens->run == run && lens->thread == segment->thread)
        return true;
    if (lens->run != run) {
        size_t count = (size_t)run->code_count + 1;
        if (count > lens->answers_count) {
            struct code_answers *larger = calloc(count, sizeof *larger);
            if (!larger)
                return false;
            forget_answers(lens);
            lens->answers = larger;
            lens->answers_count = count;
        }
        lens->in_types = 0;
        for (size_t i = 0; i < scan->trails.count; i++)
            lens->in_types |= (uint32_t)types_have(run, scan->trails.all[i]) << i;
        collect_missing(scan, lens->in_types, &lens->missing);
    }
    lens->run = run;
    lens->thread = segment->thread;
    lens->age++;
    lens->found = UINT32_MAX; /* not asked yet */
    return true;
}

/* Where the trails are in a segment, while its records are walked. */
struct marks {
    const uint8_t *next[TRAILS_MAX]; /* the first that is not behind the walk; NULL: none, or in a type */
    const uint8_t *nearest;          /* of them; the body's end: there is none */
};

static void marks_nearest(struct marks *marks, const struct scan *scan, const uint8_t *end)
{
    marks->nearest = end;
    for (size_t i = 0; i < scan->trails.count; i++)
        if (marks->next[i] && marks->next[i] < marks->nearest)
            marks->nearest = marks->next[i];
}

/* False: by what is in the body and what is not, no event in it can meet the predicate. */
static bool marks_begin(struct marks *marks, const struct scan *scan, struct lens *lens, const struct task *task)
{
    uint32_t found = lens->in_types;

    for (size_t i = 0; i < scan->trails.count; i++) {
        marks->next[i] = found >> i & 1 ? NULL
                         : trail_find(scan->trails.all[i], task->body, task->body_size, task->body);
        found |= (uint32_t)(marks->next[i] != NULL) << i;
    }
    marks_nearest(marks, scan, task->body + task->body_size);
    if (found != lens->found) {
        struct trails missing;
        collect_missing(scan, found, &missing);
        struct facts facts = facts_of(lens, &missing);
        lens->found = found;
        lens->hopeless = missing.count && predicate_ask(scan->predicate, &facts) == NEVER;
    }
    return !lens->hopeless;
}

/* Whether a trail is in the record between the places; they only rise. */
static bool marks_in(struct marks *marks, const struct scan *scan, const struct task *task, const uint8_t *record,
                     const uint8_t *end)
{
    if (marks->nearest >= end)
        return false;
    if (marks->nearest >= record)
        return true;
    for (size_t i = 0; i < scan->trails.count; i++)
        if (marks->next[i] && marks->next[i] < record)
            marks->next[i] = trail_find(scan->trails.all[i], task->body, task->body_size, record);
    marks_nearest(marks, scan, task->body + task->body_size);
    return marks->nearest < end;
}

/* Whether the event in `row` meets the predicate, by all that is known of it. missing: trails that its record
 * does not have; NULL: not known. */
static bool ask_event(const struct scan *scan, const struct lens *lens, const struct task *task,
                      const struct scan_row *row, const struct trails *missing)
{
    const struct predicate *predicate = rest_of(lens, scan, row->code, (enum event_kind)row->kind);
    struct facts facts;
    struct event event;
    enum answer answer;

    scan_facts(&(struct scan_at){.segment = task->segment, .row = row, .body = task->body}, NULL, &facts);
    facts.missing = missing;
    answer = predicate_ask(predicate, &facts);
    if (answer != MAYBE)
        return answer == ALWAYS;
    if (event_skim(task->body + row->offset, task->body_size - row->offset, &event) < 0)
        return false;
    facts.event = &event;
    return predicate_ask(predicate, &facts) == ALWAYS;
}

static void find_rows(struct scan *scan, struct lens *lens, struct task *task, struct marks *marks)
{
    const struct scan_segment *segment = task->segment;
    struct segment_walk walk;
    struct segment_event event;
    size_t capacity = task->row_capacity;
    int answer;

    segment_open(&walk, task->body, task->body_size, segment->base_time, task->base_depth);
    for (;;) {
        enum answer wanted = ALWAYS;
        bool plain = false;

        answer = segment_step(&walk, &event, event_head);
        if (answer <= 0)
            break;
        if (event.index >> SCAN_INDEX_BITS) {
            task->reason = "it has more events than any can have";
            return;
        }
        task->read++;
        if (!segment->all) {
            plain = !marks_in(marks, scan, task, event.record, walk.next);
            wanted = ask_code(lens, scan, event.event.code, event.event.kind, plain);
            if (wanted == NEVER)
                continue;
        }
        if (task->row_count == capacity &&
            !grow(&task->rows, &capacity, (size_t)task->row_count * 2 + 64, sizeof *task->rows)) {
            task->no_memory = true;
            return;
        }
        task->row_capacity = (uint32_t)capacity;
        struct scan_row *row = &task->rows[task->row_count];
        scan_row_of(segment, task->body, &walk, &event, row);
        if (wanted == ALWAYS || ask_event(scan, lens, task, row, plain ? &lens->missing : NULL))
            task->row_count++;
    }
    if (answer == DECODE_TRUNCATED)
        task->reason = "its content ends within an event";
    else if (answer < 0)
        task->reason = "its content makes no sense";
}

static void process(struct scan *scan, struct lens *lens, struct task *task)
{
    struct scan_data data = {
        .base_depth = task->base_depth, .size = task->size, .data = task->data, .data_size = task->data_size};
    struct marks marks = {0};

    if (!task->data)
        return; /* the segment is gone */
    if (!lens->zstd && !(lens->zstd = zstd_context_new())) {
        task->no_memory = true;
        return;
    }
    task->reason = scan_decompress(lens->zstd, &data, &task->body, &task->body_capacity);
    if (task->reason)
        return;
    task->body_size = (size_t)task->size;
    if (!task->segment->all) {
        if (!lens_focus(lens, scan, task->segment)) {
            task->no_memory = true;
            return;
        }
        if (!marks_begin(&marks, scan, lens, task)) {
            task->read = task->segment->count;
            return;
        }
    }
    find_rows(scan, lens, task, &marks);
}

/* ---- threads ------------------------------------------------------------------------------ */

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
        process(scan, &worker->lens, task);
        pthread_mutex_lock(&scan->mutex);
        task->done = true;
        pthread_cond_signal(&scan->finished);
    }
    pthread_mutex_unlock(&scan->mutex);
    return NULL;
}

/* One thread for each processor besides this one. Where none can be started, this one does it all. */
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

/* Returns when the task has been processed; until then this thread does what is queued. */
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
        process(scan, &scan->lens, queued);
        pthread_mutex_lock(&scan->mutex);
        queued->done = true;
    }
    pthread_mutex_unlock(&scan->mutex);
}

/* ---- fetching ahead ----------------------------------------------------------------------- */

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
    task->data_size = task->body_size = 0;
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
    if (!grow(&task->data, &task->data_capacity, data.data_size + 1, 1))
        return SCAN_NO_MEMORY;
    if (data.data_size)
        memcpy(task->data, data.data, data.data_size);
    task->data_size = data.data_size;
    task->size = data.size;
    task->base_depth = data.base_depth;
    return 1;
}

/* Fetches segments until as many are ahead as there should be. */
static int fetch_ahead(struct scan *scan)
{
    size_t wanted = 1;

    if (scan->opened >= ALONE && scan->count - scan->opened > 1) {
        start_workers(scan);
        if (scan->worker_count)
            wanted = 3 * (scan->worker_count + 1);
    }
    while (scan->fetched < scan->count && scan->fetched - scan->opened < wanted) {
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
    return 0;
}

/* ---- merging ------------------------------------------------------------------------------ */

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

    if (!grow(&scan->open, &scan->open_capacity, at + 1, sizeof *scan->open))
        return SCAN_NO_MEMORY;
    scan->open_count++;
    while (at && comes_first(scan, task, scan->open[(at - 1) / 2])) {
        scan->open[at] = scan->open[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    scan->open[at] = task;
    return 0;
}

/* Takes the next segment among those that are merged. */
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

/* Whether a segment that is not open yet may have an event before the first of the open ones. */
static bool must_open(const struct scan *scan)
{
    if (scan->opened == scan->count)
        return false;
    if (!scan->open_count)
        return true;
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
    while (must_open(scan))
        if ((scan->error = open_next(scan)) < 0)
            return scan->error;
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

/* ---- the whole ---------------------------------------------------------------------------- */

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
                      bool descending, const struct scan_calls *calls)
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
    scan->predicate = predicate;
    if (predicate)
        predicate_trails(predicate, &scan->trails);
    scan->segments = segments;
    scan->count = count;
    scan->descending = descending;
    scan->calls = *calls;
    pthread_mutex_init(&scan->mutex, NULL); /* neither can fail with default attributes on Linux */
    pthread_cond_init(&scan->queued, NULL);
    pthread_cond_init(&scan->finished, NULL);
    if (count > 1)
        qsort(segments, count, sizeof *segments, descending ? by_end : by_start);
    return scan;
}

static void lens_free(struct lens *lens)
{
    if (lens->zstd)
        zstd_context_free(lens->zstd);
    forget_answers(lens);
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

/* What is open and has an event before the start of the next one would have been handed out: must_open. */
int64_t scan_reached(const struct scan *scan)
{
    if (scan->opened == scan->count)
        return scan->descending ? INT64_MAX : INT64_MIN;
    const struct scan_segment *next = &scan->segments[scan->opened];
    return scan->descending ? next->end : next->start;
}
