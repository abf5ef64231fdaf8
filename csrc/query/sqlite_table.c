/* The common parts of the virtual tables; see sqlite_table.h. */
#include "query/sqlite_table.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "query/sqlite_bodies.h"

/* ---- a connection's ----------------------------------------------------------------------- */

struct trace *trace_new(sqlite3 *db)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (trace)
        trace->db = db;
    return trace;
}

void trace_rest(struct trace *trace)
{
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(trace->prepared[i]);
        trace->prepared[i] = NULL;
    }
    while (trace->definitions) {
        struct definitions *definitions = trace->definitions;
        trace->definitions = definitions->next;
        definitions_release(definitions);
    }
    bodies_forget(trace);
}

void trace_free(struct trace *trace)
{
    trace_rest(trace);
    free(trace->damages);
    free(trace);
}

/* ---- a table's ------------------------------------------------------------------------------ */

int trace_connect(sqlite3 *db, struct trace *trace, const char *declaration, sqlite3_vtab **made)
{
    struct trace_table *table;
    int answer = sqlite3_declare_vtab(db, declaration);
    if (answer)
        return answer;
    if (!(table = calloc(1, sizeof *table)))
        return SQLITE_NOMEM;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS); /* may be used in views: it only reads */
    table->trace = trace;
    trace->tables++;
    *made = &table->base;
    return SQLITE_OK;
}

int trace_disconnect(sqlite3_vtab *base)
{
    struct trace *trace = ((struct trace_table *)base)->trace;
    if (!--trace->tables)
        trace_rest(trace);
    free(base);
    return SQLITE_OK;
}

int trace_fail(sqlite3_vtab *vtab, const char *message)
{
    sqlite3_free(vtab->zErrMsg);
    vtab->zErrMsg = sqlite3_mprintf("%s", message);
    return SQLITE_ERROR;
}

int trace_ready(sqlite3_vtab *vtab) { return trace_check(((struct trace_table *)vtab)->trace); }

int trace_answer(sqlite3_vtab *vtab, int answer)
{
    struct trace *trace = ((struct trace_table *)vtab)->trace;
    if (answer && *trace->refusal)
        trace_fail(vtab, trace->refusal);
    *trace->refusal = 0;
    return answer;
}

int trace_plan_of_event(sqlite3_index_info *info, int event, int order, int64_t rows)
{
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->iColumn != event || constraint->op != SQLITE_INDEX_CONSTRAINT_EQ || !constraint->usable)
            continue;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->idxStr = "event=?";
        info->estimatedCost = 100;
        info->estimatedRows = rows;
        info->orderByConsumed =
            info->nOrderBy == 1 && info->aOrderBy[0].iColumn == order && !info->aOrderBy[0].desc;
        return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT;
}

int64_t trace_event_id(sqlite3_value *value)
{
    int64_t id = sqlite3_value_numeric_type(value) == SQLITE_INTEGER ? sqlite3_value_int64(value) : 0;
    return id > 0 ? id : 0;
}

void trace_result(sqlite3_context *context, struct string string, sqlite3_destructor_type destructor)
{
    sqlite3_result_text64(context, string.text, string.size, destructor, SQLITE_UTF8);
}
