/* Counters of the slow paths; see stats.h. */

#include "record/stats.h"

#ifdef PYTRACE_STATS

struct stats stats;

PyObject *stats_get(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    static const struct {
        const char *name;
        const unsigned long long *count;
    } counters[] = {
#define COUNTER(name) {#name, &stats.name},
        STATS(COUNTER)
#undef COUNTER
    };
    PyObject *all = PyDict_New();
    for (size_t i = 0; all != NULL && i < sizeof counters / sizeof *counters; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(*counters[i].count);
        if (count == NULL || PyDict_SetItemString(all, counters[i].name, count) < 0)
            Py_CLEAR(all);
        Py_XDECREF(count);
    }
    return all;
}

#endif
