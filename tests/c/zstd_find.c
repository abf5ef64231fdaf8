/* Finding zstd in a module that the process has loaded: the loader's lock is free when a module is
 * opened.
 *
 * The loader's functions are put in the place of the real ones: dl_iterate_phdr holds a lock that
 * dlopen takes second, so that no dlopen may come from within it. The system's libzstd is not found
 * here. Argument: a module that has the functions (zstd_stand_in.c).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/zstd.h"

#define CHECK(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

static int within, opened;

void *dlopen(const char *path, int mode)
{
    void *(*next)(const char *, int) = (void *(*)(const char *, int))(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
    CHECK(!within);
    opened++;
    return path && !strcmp(path, "libzstd.so.1") ? NULL : next(path, mode);
}

int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
    typedef int iterate(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    iterate *next = (iterate *)(uintptr_t)dlsym(RTLD_NEXT, "dl_iterate_phdr");
    within++;
    int answer = next(callback, data);
    within--;
    return answer;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(zstd_find()); /* no module has it */
    CHECK(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
    opened = 0;
    CHECK(!zstd_find());
    CHECK(opened > 1);
    struct zstd_context *context = zstd_context_new();
    CHECK(context);
    zstd_context_free(context);
    opened = 0;
    CHECK(!zstd_find() && !opened); /* it is looked for once */
    return 0;
}
