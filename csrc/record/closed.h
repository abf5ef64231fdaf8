/* Generators that the interpreter closes without an event; see closed.c. */
#ifndef PYTRACE_CLOSED_H
#define PYTRACE_CLOSED_H

/* From now on such ends are recorded, too, for this interpreter. Once is enough. 0, or -1 with a
 * Python exception. */
int closed_watch(void);

#endif
