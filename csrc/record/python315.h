/* pycompat.h, for 3.15. */
#ifndef PYTRACE_PYTHON315_H
#define PYTRACE_PYTHON315_H

#include "record/python314.h"

#undef COMPAT_CLOSES_UNSEEN
#define COMPAT_CLOSES_UNSEEN 0
#undef COMPAT_RAISE_NEEDS_DATA
#define COMPAT_RAISE_NEEDS_DATA 1

#endif
