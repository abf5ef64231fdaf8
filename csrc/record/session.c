/* See session.h. Two halves: starting a process that nobody sees, and the life of this process in a
 * recording from session_join to session_leave. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "record/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

void (*session_after_fork)(void);
bool (*session_before_leave)(bool alone);

#define SPAWN_STACK (64u << 10)
#define SPAWN_ENVIRONMENT 4096 /* variables that the dumper gets at most */

/* The fields that the child of a fork writes come first: each page costs it a page fault and a
 * copy. */
static struct {
    pthread_mutex_t spawning; /* of spawn */
    pthread_mutex_t check; /* for a dumper that makes no progress */
    pthread_mutex_t leave; /* locked by the first that leaves, for good */
    struct ring ring;
    uint32_t process;
    bool joined;
    bool registered;     /* false in a forked child that has not recorded anything yet */
    bool leader;         /* the recording began with it: waits and prints at the end */
    bool children;       /* forked children are recorded */
    uint64_t start_time; /* of a forked child that has not registered; from ring_fork_start */
    dev_t stderr_device; /* of the file that standard error was when the recording began */
    ino_t stderr_inode;
    uint64_t checked_at, checked_passes;
    char path[PATH_MAX];
    char executable[PATH_MAX];
    /* The memory of the two processes on the way to the dumper. They share our memory (CLONE_VM)
     * while the thread that starts them stands still (CLONE_VFORK), so there is one of it. */
    struct {
        char *arguments[8];
        char *environment[SPAWN_ENVIRONMENT + 1];
        int error; /* errno of the step that failed */
        _Alignas(16) char detacher_stack[SPAWN_STACK];
        _Alignas(16) char dumper_stack[SPAWN_STACK];
    } spawn;
} self = {
    .spawning = PTHREAD_MUTEX_INITIALIZER, .check = PTHREAD_MUTEX_INITIALIZER, .leave = PTHREAD_MUTEX_INITIALIZER};

/* ---- starting the dumper ------------------------------------------------------------------ */

#define SPAWN_HIGHEST_FD 65536 /* descriptors below are closed if there is no close_range */

static void close_descriptors(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
#endif
    for (int fd = 3; fd < SPAWN_HIGHEST_FD; fd++)
        close(fd);
}

/* In the process that becomes the dumper. */
static int become_dumper(void *unused)
{
    (void)unused;
    close_descriptors(); /* first: the program may have as many open as it may */
    int null = open("/dev/null", O_RDWR);
    if (null < 0)
        goto failed;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(null, fd) < 0)
            goto failed;
    if (null > 2)
        close(null);
    if (chdir("/") < 0) /* so that no folder is kept from being unmounted */
        goto failed;
    struct rlimit files; /* raised for the dumper alone: it may hold one for each process */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }

    struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &standard, NULL); /* fails for those that cannot be changed anyway */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(self.spawn.arguments[0], self.spawn.arguments, self.spawn.environment);
failed:
    self.spawn.error = errno;
    _exit(127);
}

/* In the process between: leaves our session, so that no terminal's Ctrl-C or hang-up arrives, and
 * ends, so that the dumper is nobody's child. */
static int detach(void *unused)
{
    (void)unused;
    if (setsid() < 0
        || clone(become_dumper, self.spawn.dumper_stack + SPAWN_STACK, CLONE_VM | CLONE_VFORK, NULL) < 0)
        self.spawn.error = errno;
    _exit(0);
}

static int spawn_locked(const char *executable, const char *ring_path)
{
    char *arguments[] = {(char *)executable, "-E", "-P", "-m", "pytracer.dumper", (char *)ring_path, NULL};
    memcpy(self.spawn.arguments, arguments, sizeof arguments);
    size_t count = 0;
    for (char **variable = environ; variable != NULL && *variable != NULL && count < SPAWN_ENVIRONMENT;
         variable++)
        /* the dumper is not to be recorded */
        if (strncmp(*variable, "PYTRACE_RING=", sizeof "PYTRACE_RING=" - 1) != 0)
            self.spawn.environment[count++] = *variable;
    self.spawn.environment[count] = NULL;
    self.spawn.error = 0;

    /* No handler of the program may run in a process that shares its memory. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    /* No exit signal: no SIGCHLD, and invisible to a wait() without __WALL or __WCLONE. */
    pid_t pid = clone(detach, self.spawn.detacher_stack + SPAWN_STACK, CLONE_VM | CLONE_VFORK, NULL);
    if (pid < 0)
        self.spawn.error = errno;
    else
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -self.spawn.error;
}

int session_spawn_dumper(const char *executable, const char *ring_path)
{
    pthread_mutex_lock(&self.spawning);
    int error = spawn_locked(executable, ring_path);
    pthread_mutex_unlock(&self.spawning);
    return error;
}

/* ---- this process in the recording -------------------------------------------------------- */

/* A dumper starts in half of it beside twenty busy processes on two processors. */
#define ELECT_INTERVAL_NS 400000000
#define CHECK_INTERVAL_NS 100000000 /* between two looks for a dumper that makes no progress */
#define LEAVE_NS 30000000000        /* how long the end may take at all */
#define LEAVE_IDLE_NS 5000000000    /* ... without any progress of the dumper */
#define START_AGAIN_NS 5000000000   /* a dumper that is not up by then is started again, once */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sleeps, every time a little longer. */
static void back_off(long *ns)
{
    nanosleep(&(struct timespec){.tv_nsec = *ns}, NULL);
    *ns = *ns * 3 / 2 < 2000000 ? *ns * 3 / 2 : 2000000;
}
#define BACK_OFF_START 100000

/* Keeps errno: the end of a process and the start of a chunk are no places where the program
 * expects it to change. */
static void check_dumper(uint64_t interval)
{
    if (!self.joined || pthread_mutex_trylock(&self.check) != 0)
        return;
    int error = errno;
    uint64_t passes = ring_dumper_passes(&self.ring), now = now_ns();
    if (passes != self.checked_passes || self.checked_at == 0) {
        self.checked_passes = passes;
        self.checked_at = now;
    } else if (now - self.checked_at >= interval) {
        self.checked_at = now;
        enum dumper_state state = ring_dumper_state(&self.ring);
        if (state != DUMPER_REFUSED && state != DUMPER_FINISHED && ring_has_dumper(self.path) == 0
            && ring_dumper_elect(&self.ring, ELECT_INTERVAL_NS) && pthread_mutex_trylock(&self.spawning) == 0) {
            spawn_locked(self.executable, self.path);
            pthread_mutex_unlock(&self.spawning);
        }
    }
    errno = error;
    pthread_mutex_unlock(&self.check);
}

void session_check_dumper(void)
{
    check_dumper(CHECK_INTERVAL_NS);
}

/* Of the fork that this thread is about to do. */
static _Thread_local uint64_t fork_time __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
    fork_time = ring_fork_time();
}

/* The child of a fork. Locks that another thread of the parent held are nobody's here. */
static void after_fork(void)
{
    self.spawning = self.check = self.leave = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    if (!self.joined)
        return;
    self.start_time = ring_fork_start(fork_time);
    self.leader = false;
    self.registered = false;
    self.joined = self.children;
    if (session_after_fork != NULL)
        session_after_fork();
}

/* A forked child that finds no place is not recorded: the recording goes on without it. */
static bool registered(void)
{
    if (self.joined && !self.registered) {
        int index = ring_process_register_fork(&self.ring, self.process + 1, self.start_time);
        if (index < 0) {
            self.joined = false;
            return false;
        }
        self.process = (uint32_t)index;
        self.registered = true;
    }
    return self.joined;
}

struct ring *session_ring(void)
{
    return registered() ? &self.ring : NULL;
}

uint32_t session_process(void)
{
    return registered() ? self.process : 0;
}

#ifdef __GLIBC__
static void at_exit(int status, void *unused)
{
    (void)unused;
    session_leave(status & 0xff);
}
#define AT_EXIT() on_exit(at_exit, NULL)
#else
static void at_exit(void)
{
    session_leave(SESSION_STATUS_UNKNOWN);
}
#define AT_EXIT() atexit(at_exit)
#endif

/* Whether the ring's settings have exactly this `name=value`. */
static bool has_setting(const char *setting)
{
    size_t left;
    const char *text = ring_settings(&self.ring, &left);
    while (left) {
        size_t size = strnlen(text, left);
        if (size == strlen(setting) && memcmp(text, setting, size) == 0)
            return true;
        size += size < left; /* the NUL */
        text += size;
        left -= size;
    }
    return false;
}

int session_join(const char *ring_path, const char *executable)
{
    static bool handlers;
    if (self.joined)
        return -EALREADY;
    if (strlen(ring_path) >= sizeof self.path || strlen(executable) >= sizeof self.executable)
        return -ENAMETOOLONG;
    if (!handlers) {
        int error = pthread_atfork(before_fork, NULL, after_fork);
        if (error)
            return -error;
        if (AT_EXIT() != 0)
            return -ENOMEM;
        handlers = true;
    }
    int lock_fd;
    int error = ring_attach(&self.ring, ring_path, RING_PRODUCER, &lock_fd);
    if (error)
        return error;
    int index = ring_dumper_state(&self.ring) == DUMPER_FINISHED ? -ENOENT
                                                                 : ring_process_register_program(&self.ring);
    if (index < 0) {
        ring_detach(&self.ring);
        return index;
    }
    struct stat status;
    if (fstat(STDERR_FILENO, &status) < 0)
        memset(&status, 0, sizeof status);
    self.stderr_device = status.st_dev;
    self.stderr_inode = status.st_ino;
    strcpy(self.path, ring_path);
    strcpy(self.executable, executable);
    self.process = (uint32_t)index;
    self.children = !has_setting("no_children=1");
    self.leader = ring_process_pid(&self.ring, 0) == ring_process_pid(&self.ring, self.process)
                  && ring_process_start_time(&self.ring, 0) == ring_process_start_time(&self.ring, self.process);
    self.registered = self.joined = true;
    return 0;
}

/* ---- waiting ------------------------------------------------------------------------------ */

enum dumper_state session_wait_ready(double seconds, char *message, size_t size)
{
    if (size)
        *message = '\0';
    if (!self.joined)
        return DUMPER_STARTING;
    uint64_t start = now_ns(), limit = (uint64_t)(seconds * 1e9), alone = start;
    bool again = false;
    long pause = BACK_OFF_START;
    enum dumper_state state;
    while ((state = ring_dumper_state(&self.ring)) == DUMPER_STARTING && now_ns() - start < limit) {
        if (now_ns() - alone >= START_AGAIN_NS) {
            if (ring_has_dumper(self.path) == 0) {
                if (again)
                    break;
                session_spawn_dumper(self.executable, self.path);
                again = true;
            }
            alone = now_ns();
        }
        back_off(&pause);
    }
    if (state == DUMPER_READY) {
        ring_clock_calibrate(&self.ring);
        return state;
    }
    if (state == DUMPER_STARTING)
        snprintf(message, size,
                 "pytrace: the process that saves the recording does not start; this shows why:\n"
                 "  %s -E -P -m pytracer.dumper %s",
                 self.executable, self.path);
    else
        snprintf(message, size, "%.*s", RING_MESSAGE_SIZE, ring_dumper_message(&self.ring));
    ring_process_exit(&self.ring, self.process, SESSION_STATUS_UNKNOWN);
    ring_detach(&self.ring);
    self.joined = false;
    return state;
}

/* Waits until the dumper has saved everything of this process. False: it did not, within bounds. */
static bool wait_saved(void)
{
    uint64_t start = now_ns(), moved = start, passes = ring_dumper_passes(&self.ring);
    long pause = BACK_OFF_START;
    enum process_state state;
    while ((state = ring_process_state(&self.ring, self.process)) != PROCESS_SAVED) {
        if (state == PROCESS_LEFT)
            return true;
        /* somebody has written over it: the dumper will never say so */
        if (state != PROCESS_EXITED && state != PROCESS_LEAVING)
            return false;
        uint64_t now = now_ns();
        if (ring_dumper_passes(&self.ring) != passes) {
            passes = ring_dumper_passes(&self.ring);
            moved = now;
        }
        if (now - start > LEAVE_NS || now - moved > LEAVE_IDLE_NS)
            return false;
        check_dumper(CHECK_INTERVAL_NS);
        back_off(&pause);
    }
    return true;
}

/* 1234567 as "1,234,567". */
static const char *with_commas(char text[32], uint64_t number)
{
    char *p = text + 31;
    *p = '\0';
    for (int digits = 0; !digits || number; number /= 10) {
        if (digits && digits % 3 == 0)
            *--p = ',';
        *--p = (char)('0' + number % 10);
        digits++;
    }
    return p;
}

/* The message if the dumper has not saved everything within bounds: the amount left, and why. */
static void tell_unsaved(char message[RING_MESSAGE_SIZE])
{
    char why[RING_TROUBLE_SIZE], events[32], kilobytes[32];
    struct ring_unsaved left;
    ring_count_unsaved(&self.ring, &left);
    ring_dumper_trouble(&self.ring, why);
    if (!*why)
        strcpy(why, ring_has_dumper(self.path) == 0 ? "the dumper has died" : "the dumper does not keep up");
    snprintf(message, RING_MESSAGE_SIZE,
             "pytrace: the recording is not yet saved; that goes on in the background (%s event%s, %s kB: %s)",
             with_commas(events, left.events), left.events == 1 ? "" : "s",
             with_commas(kilobytes, (left.bytes + 999) / 1000), why);
}

/* The text and a line's end to standard error, in one write. */
static void say(const char *text, size_t size)
{
    struct stat status;
    if (fstat(STDERR_FILENO, &status) < 0 || status.st_dev != self.stderr_device
        || status.st_ino != self.stderr_inode)
        return;
    char line[RING_MESSAGE_SIZE + 1];
    if (size > RING_MESSAGE_SIZE)
        size = RING_MESSAGE_SIZE;
    memcpy(line, text, size);
    line[size] = '\n';
    while (write(STDERR_FILENO, line, size + 1) < 0 && errno == EINTR)
        ;
}

void session_leave(int exit_status)
{
    /* The second caller (another thread, a handler that calls exit) has nothing to do. */
    if (!self.joined || pthread_mutex_trylock(&self.leave) != 0)
        return;
    RING_TEST_POINT(leaving);
    bool silent = session_before_leave == NULL || session_before_leave(false);
    if (!self.registered)
        return;
    RING_TEST_POINT(before_exited);
    (silent ? ring_process_exit : ring_process_leave)(&self.ring, self.process, exit_status);
    RING_TEST_POINT(after_exited);
    if (!self.leader)
        return;
    char unsaved[RING_MESSAGE_SIZE];
    const char *message = ring_dumper_message(&self.ring);
    bool saved = wait_saved();
    if (!saved) {
        tell_unsaved(unsaved);
        message = unsaved;
    } else if (ring_dumper_state(&self.ring) != DUMPER_FINISHED) {
        message = ring_dumper_so_far(&self.ring);
    }
    RING_TEST_POINT(before_summary);
    size_t size = strnlen(message, RING_MESSAGE_SIZE);
    if (size) /* with --quiet the message is empty, unless there was an error */
        say(message, size);
    RING_TEST_POINT(after_summary);
}

void session_end(int exit_status)
{
    if (!self.joined || pthread_mutex_trylock(&self.leave) != 0)
        return;
    bool silent = session_before_leave == NULL || session_before_leave(true);
    if (self.registered)
        (silent ? ring_process_exit : ring_process_leave)(&self.ring, self.process, exit_status);
}
