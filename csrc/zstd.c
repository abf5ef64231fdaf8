/* zstd, found at run time; see zstd.h. The four functions are part of zstd's stable interface. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "zstd.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

static struct {
    struct zstd_context *(*create)(void);
    size_t (*release)(struct zstd_context *);
    size_t (*decompress)(struct zstd_context *, void *, size_t, const void *, size_t);
    unsigned (*is_error)(size_t);
    const char *(*error_name)(size_t);
} zstd;

static const char *const missing =
    "segments are compressed by zstd, which is not here; install libzstd (Debian: libzstd1)";

/* A pointer to an object as one to a function, which C leaves to POSIX. */
#define TAKE(member, name) (*(void **)&zstd.member = dlsym(library, name))

static int take_from(void *library)
{
    return library && TAKE(create, "ZSTD_createDCtx") && TAKE(release, "ZSTD_freeDCtx") &&
           TAKE(decompress, "ZSTD_decompressDCtx") && TAKE(is_error, "ZSTD_isError") &&
           TAKE(error_name, "ZSTD_getErrorName");
}

/* For dl_iterate_phdr: takes the functions of a module that is loaded, privately perhaps. */
static int try_loaded(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (!info->dlpi_name || !*info->dlpi_name)
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!take_from(library)) {
        if (library)
            dlclose(library);
        return 0;
    }
    *(int *)found = 1;
    return 1; /* the reference is kept: its functions stay */
}

static int ready;

static void find(void)
{
    ready = take_from(dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL));
    if (!ready)
        dl_iterate_phdr(try_loaded, &ready);
}

const char *zstd_find(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (!ready)
        find(); /* again, where there was none before: a module may have come */
    const char *answer = ready ? NULL : missing;
    pthread_mutex_unlock(&mutex);
    return answer;
}

struct zstd_context *zstd_context_new(void) { return zstd.create(); }

void zstd_context_free(struct zstd_context *context)
{
    if (context)
        zstd.release(context);
}

long zstd_decompress(struct zstd_context *context, void *out, size_t capacity, const void *data, size_t size,
                     const char **reason)
{
    size_t written = zstd.decompress(context, out, capacity, data, size);
    if (zstd.is_error(written)) {
        *reason = zstd.error_name(written);
        return -1;
    }
    return (long)written;
}
