/* Tables that count what meets a condition; see sqlite_counted.h. */
#include "query/sqlite_counted.h"
SQLITE_EXTENSION_INIT3

int counted_plan(sqlite3_index_info *info, int run, int match, int own, char *const plans[4])
{
    int by_run = -1, by_match = -1, arguments = 0;

    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->op == SQLITE_INDEX_CONSTRAINT_MATCH && constraint->iColumn == match) {
            if (!constraint->usable || by_match >= 0)
                return SQLITE_CONSTRAINT; /* nobody else can answer it */
            by_match = i;
        } else if (constraint->usable && constraint->iColumn == run &&
                   constraint->op == SQLITE_INDEX_CONSTRAINT_EQ && by_run < 0) {
            by_run = i;
        }
    }
    if (by_run >= 0)
        info->aConstraintUsage[by_run].argvIndex = ++arguments; /* no `omit`: SQLite compares */
    if (by_match >= 0) {
        info->aConstraintUsage[by_match].argvIndex = ++arguments;
        info->aConstraintUsage[by_match].omit = 1;
    }
    info->idxNum = (by_run >= 0 ? BY_RUN : 0) | (by_match >= 0 ? BY_MATCH : 0);
    info->idxStr = plans[info->idxNum];
    info->estimatedCost = by_run >= 0 ? 1e7 : 1e8;
    info->estimatedRows = 1000;
    if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn == own && info->aOrderBy[0].desc)
        info->orderByConsumed = 1;
    return SQLITE_OK;
}

static struct predicate *bounds_of(const struct predicate *counted, const int64_t *run)
{
    static const enum field fields[] = {FIELD_RUN, FIELD_TIME, FIELD_PID, FIELD_TID, FIELD_STREAM,
                                        FIELD_PROCESS};
    struct predicate *members[sizeof fields / sizeof *fields + 1];
    size_t count = 0;

    if (run)
        members[count++] = predicate_range(FIELD_RUN, *run, *run);
    for (size_t i = 0; counted && i < sizeof fields / sizeof *fields; i++) {
        struct bounds bounds = predicate_bounds(counted, fields[i]);
        if (bounds.low > INT64_MIN || bounds.high < INT64_MAX)
            members[count++] = predicate_range(fields[i], bounds.low, bounds.high);
    }
    return predicate_group(GROUP_AND, members, count);
}

int counted_begin(sqlite3_vtab *vtab, int plan, sqlite3_value **values, struct predicate **counted,
                  struct predicate **around)
{
    int64_t run = 0;

    if (plan & BY_RUN)
        run = sqlite3_value_int64(*values++);
    if (plan & BY_MATCH) {
        char message[256] = "out of memory";
        const char *text = (const char *)sqlite3_value_text(*values);
        *counted = predicate_parse(text ? text : "", (size_t)sqlite3_value_bytes(*values), message,
                                   sizeof message);
        if (!*counted)
            return trace_fail(vtab, message);
    }
    *around = bounds_of(*counted, plan & BY_RUN ? &run : NULL);
    return *around ? SQLITE_OK : SQLITE_NOMEM;
}
