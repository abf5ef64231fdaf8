/* zstd, found at run time; see zstd.h. The five functions are part of zstd's stable interface. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "query/zstd.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "common/array.h"

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

static bool take_from(void *library)
{
    return library && TAKE(create, "ZSTD_createDCtx") && TAKE(release, "ZSTD_freeDCtx") &&
           TAKE(decompress, "ZSTD_decompressDCtx") && TAKE(is_error, "ZSTD_isError") &&
           TAKE(error_name, "ZSTD_getErrorName");
}

/* The paths of modules, one behind the other, each with its NUL. */
struct paths {
    char *text;
    size_t size, capacity;
};

/* For dl_iterate_phdr, which holds one of the loader's locks meanwhile: it only takes the path
 * down. A dlopen here would take the other lock second, which a thread that imports a module
 * takes first. */
static int note_path(struct dl_phdr_info *info, size_t size, void *context)
{
    struct paths *paths = context;
    size_t length = info->dlpi_name ? strlen(info->dlpi_name) : 0;
    (void)size;

    if (!length)
        return 0;
    if (!array_reserve(&paths->text, &paths->capacity, paths->size + length + 1, 1))
        return 1;
    memcpy(paths->text + paths->size, info->dlpi_name, length + 1);
    paths->size += length + 1;
    return 0;
}

/* Takes the functions of a module that is loaded, privately perhaps. */
static bool take_loaded(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD); /* NULL: it has gone meanwhile */
    if (take_from(library))
        return true; /* the reference is kept: its functions stay */
    if (library)
        dlclose(library);
    return false;
}

static bool find(void)
{
    struct paths paths = {0};
    bool found = take_from(dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL));

    if (!found)
        dl_iterate_phdr(note_path, &paths);
    for (size_t at = 0; at < paths.size && !found; at += strlen(paths.text + at) + 1)
        found = take_loaded(paths.text + at);
    free(paths.text);
    return found;
}

const char *zstd_find(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool ready;
    pthread_mutex_lock(&mutex);
    if (!ready)
        ready = find(); /* again, if there was none before: a module may have come */
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
