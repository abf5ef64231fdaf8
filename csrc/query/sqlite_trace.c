/* The recorded events as SQL tables: a loadable SQLite extension, for any SQLite from 3.38 on.
 *
 *   SELECT func, duration FROM event WHERE kind = 'return' AND duration > 1000000 ORDER BY time;
 *   SELECT value FROM argument WHERE name = 'user' AND value LIKE '%bob%';
 *   SELECT * FROM event WHERE event MATCH '(and (like func "pay%") (not (any (like name "user"))))';
 *   SELECT func, count(*), sum(duration) FROM call GROUP BY func;
 *   SELECT * FROM damage;                     -- what could not be read
 *
 * They are eponymous virtual tables over the ordinary tables of dumper/schema.sql. This file is the
 * entry point, and lists them. From below:
 *
 *   sqlite_database     the connection: statements on the ordinary tables, unreadable segments
 *   sqlite_definitions  a run's functions, threads, types, and the list of its segments
 *   sqlite_segments     the segments of a query, and their data
 *   sqlite_bodies       single segments
 *   sqlite_table        the common parts of the virtual tables
 *   sqlite_plan         the conditions of SQL that are taken over
 *   sqlite_conditions   ... as predicates
 *   sqlite_calls        the outcomes of calls
 *   sqlite_event, sqlite_hot, sqlite_line, sqlite_source, sqlite_stack, sqlite_variable,
 *   sqlite_damage, sqlite_skipped   the tables
 *
 * No other file knows SQLite. Nothing here writes.
 */
#include "query/sqlite_table.h"
SQLITE_EXTENSION_INIT1

#define EXPORTED __attribute__((visibility("default")))

static void module_left(void *context)
{
    struct trace *trace = context;
    if (!--trace->modules)
        trace_free(trace);
}

EXPORTED int sqlite3_sqlitetrace_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);
EXPORTED int sqlite3_sqlitetrace_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
    static const struct {
        const char *name;
        const sqlite3_module *module;
    } modules[] = {{"event", &event_module}, {"argument", &argument_module}, {"damage", &damage_module},
                   {"call", &call_module}, {"stack", &stack_module}, {"hot", &hot_module},
                   {"line", &line_module}, {"source", &source_module}, {"variable", &variable_module},
                   {"skipped", &skipped_module}};
    int answer = SQLITE_OK;

    SQLITE_EXTENSION_INIT2(api);
    if (sqlite3_libversion_number() < 3038000) {
        *error = sqlite3_mprintf("this needs SQLite 3.38 or later, and this is %s", sqlite3_libversion());
        return SQLITE_ERROR;
    }
    struct trace *trace = trace_new(db);
    if (!trace)
        return SQLITE_NOMEM;
    trace->modules = 1; /* until all are made */
    for (size_t i = 0; i < sizeof modules / sizeof *modules && !answer; i++) {
        trace->modules++; /* SQLite gives it back also if it fails */
        answer = sqlite3_create_module_v2(db, modules[i].name, modules[i].module, trace, module_left);
    }
    module_left(trace);
    return answer;
}
