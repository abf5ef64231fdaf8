/* Names of secrets, whose values are not recorded: a POSIX extended regular expression, case
 * ignored. */
#ifndef PYTRACE_SECRETS_H
#define PYTRACE_SECRETS_H

#include "record/pycompat.h"

/* Takes this expression from now on; NULL: nothing is a secret. 0, or -1 with a Python
 * exception. */
int secrets_configure(const char *pattern);
/* NULL, or the mistake in this pattern, in `message`. */
const char *secrets_check_pattern(const char *pattern, char *message, size_t size);

/* True: the name of an argument, or the key of a dict, looks like that of a secret. Only str, bytes
 * and their subclasses can; of a long one the first 255 bytes count. */
bool secrets_match(PyObject *name);

#endif
