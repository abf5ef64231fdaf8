/* Objects of known types (CONTAINER_PARTS) as their repr shows them; see enum value_form. */
#ifndef PYTRACE_KNOWN_H
#define PYTRACE_KNOWN_H

#include "query/out.h"

/* False: a form of a later version; nothing is written. */
bool known_value(struct out *out, const struct value *value, const struct text_names *names);

#endif
