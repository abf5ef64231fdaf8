/* getppid in a loop, in so many processes at once: `getppid LOOPS PROCESSES`. Each prints the ns of
 * its own processor time for one call. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int count, char **words)
{
    long loops = count > 1 ? atol(words[1]) : 0, processes = count > 2 ? atol(words[2]) : 1;
    for (; processes > 0; processes--) {
        if (fork())
            continue;
        double start = now();
        for (long i = 0; i < loops; i++)
            syscall(SYS_getppid);
        printf("%.1f\n", (now() - start) / (double)(loops ? loops : 1));
        return 0;
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
