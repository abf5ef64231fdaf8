/* What the fuzzers here share: CHECK, the sanitizers' defaults, and a main if the compiler has
 * none.
 *
 * A fuzzer is a LLVMFuzzerTestOneInput, which ends the process if something is wrong. clang's
 * -fsanitize=fuzzer makes a program of it that looks for inputs (`make fuzz`). With -DFUZZ_ALONE it
 * is one that tries the inputs in the files given (`make replay`): so every compiler can tell
 * whether what was found once stays mended.
 */
#ifndef PYTRACE_FUZZ_H
#define PYTRACE_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), abort()))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No search for leaks: what is kept to the end is no leak, and the search needs rights that not
 * every machine gives. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

#ifdef FUZZ_ALONE
static void fuzz_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    CHECK(file && !fseek(file, 0, SEEK_END));
    long size = ftell(file);
    CHECK(size >= 0 && !fseek(file, 0, SEEK_SET));
    uint8_t *data = malloc(size ? (size_t)size : 1); /* exact: a read behind the end is seen */
    CHECK(data && fread(data, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    printf("%s\n", path); /* the last one is to blame */
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        fuzz_file(argv[i]);
    return 0;
}
#endif

#endif
