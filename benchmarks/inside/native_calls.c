/* Calls of a function that does next to nothing, compiled with -finstrument-functions: as a library
 * for Python, and, with -DPROGRAM, as a program of its own, which uftrace records.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define QUIET __attribute__((no_instrument_function))

__attribute__((noinline)) static int next(int x) { return x + 1; }

/* ns that so many calls of it take */
QUIET long native_calls(long count)
{
    struct timespec from, to;
    volatile int x = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (long i = 0; i < count; i++)
        x = next(x);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
}

#ifdef PROGRAM
int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1;
    native_calls(count / 10);
    printf("%ld\n", native_calls(count));
    return 0;
}
#endif
