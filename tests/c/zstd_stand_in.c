/* A module with the functions of zstd's that are looked for, which do nothing: for zstd_find.c. */
#include <stddef.h>

static int context;

void *ZSTD_createDCtx(void);
void *ZSTD_createDCtx(void) { return &context; }

size_t ZSTD_freeDCtx(void *freed);
size_t ZSTD_freeDCtx(void *freed) { return freed != &context; }

size_t ZSTD_decompressDCtx(void *context_, void *out, size_t capacity, const void *data, size_t size);
size_t ZSTD_decompressDCtx(void *context_, void *out, size_t capacity, const void *data, size_t size)
{
    (void)context_, (void)out, (void)capacity, (void)data, (void)size;
    return 0;
}

unsigned ZSTD_isError(size_t code);
unsigned ZSTD_isError(size_t code) { return code != 0; }

const char *ZSTD_getErrorName(size_t code);
const char *ZSTD_getErrorName(size_t code)
{
    (void)code;
    return "";
}
