/* Processes in the ring's table: who runs, who has ended and how; and the clock they share. */
#include "ring_test.h"
#include "ring/clock.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

static struct ring ring;

/* Waits until a child has ended, and leaves it a zombie. */
static void wait_for_end(pid_t pid)
{
    siginfo_t information;
    CHECK_EQUAL(waitid(P_PID, (id_t)pid, &information, WEXITED | WNOWAIT), 0);
}

static void test_register(void)
{
    int process = ring_process_register(&ring, 0);
    CHECK_EQUAL(process, 0);
    CHECK_EQUAL(ring_process_state(&ring, 0), PROCESS_RUNNING);
    CHECK(ring_process_alive(&ring, 0));
    CHECK_EQUAL(ring.header->processes[0].pid, getpid());
    CHECK_EQUAL(ring.header->processes[0].start_time, ring_start_time((uint32_t)getpid()));
    CHECK(ring_start_time((uint32_t)getpid()) > 0);
    CHECK_EQUAL(ring_start_time(4194305), 0); /* beyond what a pid can be */
    CHECK(!ring_process_alive(&ring, 1));
    CHECK_EQUAL(ring_process_state(&ring, 1), PROCESS_NONE);
}

static void test_exit(void)
{
    pid_t pid = fork();
    if (!pid) {
        ring_process_exit(&ring, 0, 9); /* the parent's: is not ours to end */
        int process = ring_process_register(&ring, 0 + 1);
        CHECK_EQUAL(process, 1);
        ring_process_exit(&ring, 1, -3);
        CHECK_EQUAL(ring_process_state(&ring, 1), PROCESS_EXITED);
        CHECK(ring_process_alive(&ring, 1)); /* whatever it says */
        _exit(0);
    }
    wait_for_end(pid);
    CHECK_EQUAL(ring_process_state(&ring, 0), PROCESS_RUNNING);
    CHECK_EQUAL(ring_process_state(&ring, 1), PROCESS_EXITED);
    CHECK_EQUAL(ring.header->processes[1].exit_status, -3);
    CHECK_EQUAL(ring.header->processes[1].parent, 1);
    CHECK(!ring_process_alive(&ring, 1)); /* a zombie has ended */
    CHECK_EQUAL(wait_for(pid), 0);
    CHECK(!ring_process_alive(&ring, 1));
    ring_process_saved(&ring, 1);
    CHECK_EQUAL(ring_process_state(&ring, 1), PROCESS_SAVED);
    CHECK(!ring_process_alive(&ring, 1));
}

/* Killed between taking a slot and filling it: its pid is there all the same. */
static void test_death_while_starting(void)
{
    pid_t pid = fork();
    if (!pid) {
        die_at("after_slot", 1);
        ring_process_register(&ring, 0);
        _exit(0);
    }
    wait_for_end(pid);
    CHECK_EQUAL(ring_process_state(&ring, 2), PROCESS_STARTING);
    CHECK(!ring_process_alive(&ring, 2));
    CHECK_EQUAL(wait_for(pid), SIGKILL);
    CHECK(!ring_process_alive(&ring, 2));
    ring_process_saved(&ring, 2);
}

/* A pid that belongs to another process by now. */
static void test_pid_used_again(void)
{
    ring.header->processes[0].start_time--;
    CHECK(!ring_process_alive(&ring, 0));
    ring.header->processes[0].start_time++;
    CHECK(ring_process_alive(&ring, 0));
}

/* After exec the same process comes again: what it was before maps the ring no more. */
static void test_registered_again(void)
{
    CHECK(!ring_process_replaced(&ring, 0));
    ring.header->processes[0].image++;
    CHECK(!ring_process_alive(&ring, 0));
    CHECK(ring_process_replaced(&ring, 0));
    ring.header->processes[0].image--;
    CHECK(ring_process_alive(&ring, 0));

    CHECK_EQUAL(ring_process_register_program(&ring), 3);
    CHECK(!ring_process_alive(&ring, 0));
    CHECK(ring_process_replaced(&ring, 0));
    CHECK_EQUAL(ring_process_state(&ring, 0), PROCESS_EXITED);
    CHECK(ring_process_alive(&ring, 3));
    CHECK(!ring_process_replaced(&ring, 3));
    CHECK_EQUAL(ring_process_parent(&ring, 3), 0 + 1);
}

/* A program hangs under the nearest process above it that has registered. */
static void test_parent(void)
{
    pid_t pid = fork();
    if (!pid) { /* like a shell: it does not register */
        pid_t child = fork();
        if (!child) {
            CHECK_EQUAL(ring_process_register_program(&ring), 4);
            CHECK_EQUAL(ring_process_parent(&ring, 4), 3 + 1);
            _exit(0);
        }
        _exit(wait_for(child));
    }
    CHECK_EQUAL(wait_for(pid), 0);
}

static void *end_after_main(void *unused)
{
    char path[64], text[512];
    (void)unused;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)getpid());
    for (;;) { /* until the main thread is gone */
        FILE *file = fopen(path, "r");
        CHECK(file && fgets(text, sizeof text, file));
        fclose(file);
        if (strstr(text, ") Z "))
            break;
        sched_yield();
    }
    _exit(ring_process_alive(&ring, 5) ? 42 : 43);
}

/* A process whose main thread has ended looks like a zombie, and writes on. */
static void test_main_thread_ends(void)
{
    pid_t pid = fork();
    if (!pid) {
        pthread_t other;
        CHECK_EQUAL(ring_process_register(&ring, 0), 5);
        CHECK_EQUAL(pthread_create(&other, NULL, end_after_main, NULL), 0);
        pthread_exit(NULL);
    }
    int status = wait_for(pid);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 42);
}

/* A forked child registers as `process`, with the start time that it knows from before the fork;
 * `orphan`: after its parent has ended. Returns whether it knew one. */
static bool register_fork(int process, bool orphan)
{
    int pair[2];
    bool known;
    CHECK_EQUAL(pipe(pair), 0);
    pid_t between = orphan ? fork() : 0;
    if (!between) {
        pid_t parent = getpid();
        uint64_t before = ring_fork_time();
        pid_t pid = fork();
        if (!pid) {
            uint64_t start = ring_fork_start(before);
            while (orphan && getppid() == parent)
                sched_yield();
            CHECK(!start || start == ring_start_time((uint32_t)getpid()));
            CHECK_EQUAL(ring_process_register_fork(&ring, 3 + 1, start), process);
            CHECK_EQUAL(ring.header->processes[process].start_time, ring_start_time((uint32_t)getpid()));
            CHECK_EQUAL(ring.header->processes[process].image, ring.header->processes[3].image);
            CHECK(ring_process_alive(&ring, (uint32_t)process));
            known = start != 0;
            CHECK_EQUAL(write(pair[1], &known, sizeof known), sizeof known);
            _exit(0);
        }
        if (orphan)
            _exit(0);
        between = pid;
    }
    CHECK_EQUAL(wait_for(between), 0);
    close(pair[1]);
    CHECK_EQUAL(read(pair[0], &known, sizeof known), sizeof known);
    close(pair[0]);
    return known;
}

/* Most forks begin and end within a tick of the clock that start times are told in. */
static int test_forks(int process)
{
    CHECK_EQUAL(ring_fork_start(0), 0);
    while (!register_fork(process++, false))
        CHECK(process < 1000);
    while (!register_fork(process++, true))
        CHECK(process < 1000);
    return process;
}

/* One that cannot open /proc, and does not know its start time, is known by its pid alone. */
static void test_fork_without_descriptors(int process)
{
    pid_t pid = fork();
    if (!pid) {
        CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}), 0);
        CHECK_EQUAL(ring_process_register_fork(&ring, 3 + 1, 0), process);
        CHECK_EQUAL(ring_process_register(&ring, 0), -EMFILE);
        CHECK_EQUAL(raise(SIGSTOP), 0);
        _exit(0);
    }
    int status;
    CHECK_EQUAL(waitpid(pid, &status, WUNTRACED), pid);
    CHECK(WIFSTOPPED(status));
    CHECK_EQUAL(ring.header->processes[process].start_time, 0);
    CHECK(ring_process_alive(&ring, (uint32_t)process));
    CHECK_EQUAL(kill(pid, SIGCONT), 0);
    CHECK_EQUAL(wait_for(pid), 0);
    CHECK(!ring_process_alive(&ring, (uint32_t)process));
}

/* Whoever has no descriptor left to look into /proc takes nobody for dead. */
static void test_look_without_descriptors(void)
{
    pid_t pid = fork();
    if (!pid) {
        CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}), 0);
        CHECK(ring_process_alive(&ring, 3));     /* runs */
        CHECK(ring_process_alive(&ring, 4));     /* has ended, which cannot be seen */
        CHECK(!ring_process_replaced(&ring, 3));
        _exit(0);
    }
    CHECK(!ring_process_alive(&ring, 4));
    CHECK_EQUAL(wait_for(pid), 0);
}

static void test_other_pid_namespace(void)
{
    ring.header->pid_namespace++;
    CHECK_EQUAL(ring_process_register(&ring, 0), -EXDEV);
    ring.header->pid_namespace--;
}

static void test_table_full(int process)
{
    for (int i = process; i < RING_PROCESSES; i++)
        CHECK_EQUAL(ring_process_register(&ring, 0), i);
    CHECK_EQUAL(ring_turned_away(&ring), 0);
    CHECK_EQUAL(ring_process_register(&ring, 0), -ENOSPC);
    CHECK(ring_process_alive(&ring, RING_PROCESSES - 1));
    CHECK_EQUAL(ring_process_register_program(&ring), -ENOSPC);
    CHECK_EQUAL(ring_turned_away(&ring), 2);
}

static uint64_t units(void)
{
    return clock_units(ring.header->clock_kind, ring.header->clock_shift);
}

static void test_clock(void)
{
    CHECK(ring.header->clock_kind == CLOCK_NANOSECONDS || ring_clock_scale(&ring) == 0);
    ring_clock_calibrate(&ring);
    uint64_t scale = ring_clock_scale(&ring);
    double unit = (double)scale / 4294967296.0;
    printf("clock kind %u: %.3f ns a unit\n", ring.header->clock_kind, unit);
#if defined(__x86_64__)
    if (ring.header->clock_kind == CLOCK_TICKS)
        CHECK(unit > 3.9 && unit < 8.1);
#endif
    if (ring.header->clock_kind == CLOCK_NANOSECONDS)
        CHECK(unit == 1.0);
    ring_clock_calibrate(&ring);
    CHECK_EQUAL(ring_clock_scale(&ring), scale);

    /* The epoch and the unit, against the kernel's clock: half a ms off, over what has passed. */
    double best = 1e18;
    for (int i = 0; i < 1000; i++) {
        double now = (double)(int64_t)(units() - ring.header->epoch_units) * unit;
        double wall = (double)(int64_t)(clock_ns(CLOCK_REALTIME) - (uint64_t)ring.header->epoch_ns);
        double off = wall > now ? wall - now : now - wall;
        best = off < best ? off : best;
    }
    CHECK(best < 5e5);
    uint64_t before = units();
    for (int i = 0; i < 100000; i++) {
        uint64_t now = units();
        CHECK(now + 100 >= before); /* cores agree to less than a us */
        before = now;
    }
}

/* It says how it ends, and lives on: its chunks are its own. */
static void test_leave(void)
{
    int ends[2];
    uint32_t process = 0;
    while (ring_process_state(&ring, process) != PROCESS_NONE)
        process++;
    CHECK_EQUAL(pipe(ends), 0);
    pid_t pid = fork();
    if (!pid) {
        char byte;
        close(ends[1]);
        CHECK_EQUAL(ring_process_register(&ring, 0), process);
        ring_process_leave(&ring, process, 7);
        _exit((int)read(ends[0], &byte, 1));
    }
    while (ring_process_state(&ring, process) != PROCESS_LEAVING)
        sched_yield();
    CHECK_EQUAL(ring_process_exit_status(&ring, process), 7);
    CHECK(ring_process_alive(&ring, process));
    ring_process_left(&ring, process);
    CHECK_EQUAL(ring_process_state(&ring, process), PROCESS_LEFT);
    CHECK(ring_process_alive(&ring, process));
    close(ends[0]);
    close(ends[1]);
    CHECK_EQUAL(wait_for(pid), 0);
    CHECK(!ring_process_alive(&ring, process));
    CHECK_EQUAL(ring_process_exit_status(&ring, process), 7);
}

int main(void)
{
    make_ring(&ring, RING_MIN_CHUNKS * RING_MIN_CHUNK_SIZE);
    test_clock();
    test_register();
    test_exit();
    test_death_while_starting();
    test_pid_used_again();
    test_registered_again();
    test_parent();
    test_main_thread_ends();
    test_look_without_descriptors();
    test_other_pid_namespace();
    int next = test_forks(6);
    test_fork_without_descriptors(next++);
    test_leave();
    test_table_full(++next);
    ring_detach(&ring);
    return 0;
}
