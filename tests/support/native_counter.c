/* Takes the place of the C library's __cyg_profile_func_enter and _exit (LD_PRELOAD) and writes a
 * line for each: the thread, + or -, the address in the object, and the object. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void put(char sign, void *function)
{
    static int file = -1;
    char line[4200];
    Dl_info info;
    if (file < 0)
        file = open(getenv("NATIVE_COUNTS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (!dladdr(function, &info))
        return;
    int size = snprintf(line, sizeof line, "%ld %c %lx %s\n", (long)syscall(SYS_gettid), sign,
                        (unsigned long)((char *)function - (char *)info.dli_fbase), info.dli_fname);
    (void)!write(file, line, (size_t)size);
}

void __cyg_profile_func_enter(void *function, void *site) { (void)site, put('+', function); }
void __cyg_profile_func_exit(void *function, void *site) { (void)site, put('-', function); }
