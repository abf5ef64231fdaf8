/* A library that does what native code can do: compiled with -finstrument-functions by
 * native_libraries.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

int leaf(int x) { return x + 1; }

void stores(volatile int *x) { *x = leaf(*x); }

static int hidden(int x) { return leaf(x) * 2; }

int chain(int n)
{
    volatile int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += hidden(i);
        stores(&sum);
    }
    return sum;
}

int factorial(int n) { return n <= 1 ? leaf(0) : n * factorial(n - 1); }

int call_back(int (*function)(int), int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += function(i);
    return sum;
}

static void *work(void *rounds)
{
    for (long i = 0; i < (long)rounds; i++)
        chain(2);
    return NULL;
}

int run_threads(int count, long rounds)
{
    pthread_t threads[256];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)rounds);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return count;
}

static jmp_buf place;

void deep(int n)
{
    if (n == 0)
        longjmp(place, 1);
    deep(n - 1);
    leaf(n);
}

int jumps(int n)
{
    volatile int done = 0;
    for (volatile int i = 0; i < n; i++)
        if (setjmp(place) == 0)
            deep(2);
        else
            done++;
    return done + leaf(1);
}

int forks(void)
{
    pid_t child = fork();
    if (child == 0) {
        chain(1);
        _exit(leaf(2));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static volatile long handled;

static void on_alarm(int signal)
{
    (void)signal;
    handled = leaf((int)handled);
}

/* Calls on_alarm every so many µs; 0: no more. Returns how often it was called. */
long alarms(long microseconds)
{
    struct sigaction action = {0};
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, NULL);
    return handled;
}

/* Loads another library and calls one of its functions; `keep`: does not unload it. */
int loads(const char *path, const char *name, int keep)
{
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        return -1;
    int (*function)(int) = (int (*)(int))(intptr_t)dlsym(library, name);
    int result = function != NULL ? function(1) : -2;
    if (!keep)
        dlclose(library);
    return result;
}

/* Whether the next `leaf` behind this object is not this object's own: dlsym looks who asks. */
int next_is_another(void) { return dlsym(RTLD_NEXT, "leaf") != (void *)(intptr_t)leaf; }
