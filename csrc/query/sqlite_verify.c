/* Promises to SQLite's planner, verified; see sqlite_verify.h. */
#include "query/sqlite_verify.h"
SQLITE_EXTENSION_INIT3

#include <string.h>

#ifdef PYTRACE_VERIFY

static const char *text_of(unsigned char op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return "=";
    case SQLITE_INDEX_CONSTRAINT_LT:
        return "<";
    case SQLITE_INDEX_CONSTRAINT_LE:
        return "<=";
    case SQLITE_INDEX_CONSTRAINT_GT:
        return ">";
    case SQLITE_INDEX_CONSTRAINT_GE:
        return ">=";
    default:
        return "LIKE";
    }
}

/* Whether a plan looks for one id: then there is one event. */
static bool asks_for_one(const struct table *table, const char *plan)
{
    int column;
    unsigned char op;

    while ((plan = plan_read(plan, table, &column, &op)))
        if (column == table->id && op == SQLITE_INDEX_CONSTRAINT_EQ)
            return true;
    return false;
}

/* Whether the constraints that a plan takes over are numbered from 1 on, and are those of the
 * plan's text. */
static bool is_numbered(const struct table *table, const sqlite3_index_info *info, const char *plan)
{
    int taken = 0, sum = 0, conditions = strstr(plan, "OFFSET?") != NULL, column;
    unsigned char op;

    while ((plan = plan_read(plan, table, &column, &op)))
        conditions++;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint_usage *usage = &info->aConstraintUsage[i];
        if (!usage->argvIndex != !usage->omit || (usage->argvIndex && !info->aConstraint[i].usable))
            return false;
        taken += usage->argvIndex > 0;
        sum += usage->argvIndex;
    }
    return taken == conditions && sum == taken * (taken + 1) / 2;
}

int verify_plan(struct trace_table *vtab, const sqlite3_index_info *info)
{
    const struct table *table = vtab->table;
    const char *plan = info->idxStr ? info->idxStr : "";
    bool unique = info->idxFlags & SQLITE_INDEX_SCAN_UNIQUE;

    if (info->estimatedRows < 1 || info->estimatedCost < (double)info->estimatedRows)
        return trace_fail(&vtab->base, "verify: a plan of no rows, or of rows that cost nothing");
    if (unique != (asks_for_one(table, plan) && !table->arguments) || (unique && info->estimatedRows > 1))
        return trace_fail(&vtab->base, "verify: one row is promised, or is not, against the plan");
    if (info->orderByConsumed != (strstr(plan, "ORDER BY") != NULL))
        return trace_fail(&vtab->base, "verify: an order is promised, or is not, against the plan");
    if (!is_numbered(table, info, plan))
        return trace_fail(&vtab->base, "verify: a plan does not have the conditions that it takes over");
    return SQLITE_OK;
}

/* Adds a condition, and binds nothing yet: ?1 is the row's id, ?2 its position, its values are
 * those from *next on. */
static void add_condition(sqlite3_str *sql, const char *column, unsigned char op, sqlite3_value *value,
                          int *next)
{
    sqlite3_value *one;

    if (op == SQLITE_INDEX_CONSTRAINT_MATCH) { /* a constraint, or nothing: of a look-up, then */
        sqlite3_str_appendf(sql, " AND EXISTS (SELECT 1 FROM event WHERE id = ?1 AND %s MATCH ?%d)", column,
                            (*next)++);
        return;
    }
    if (op) {
        sqlite3_str_appendf(sql, " AND %s %s ?%d", column, text_of(op), (*next)++);
        return;
    }
    sqlite3_str_appendf(sql, " AND %s IN (", column);
    const char *comma = "";
    for (int answer = sqlite3_vtab_in_first(value, &one); answer == SQLITE_OK;
         answer = sqlite3_vtab_in_next(value, &one), comma = ", ")
        sqlite3_str_appendf(sql, "%s?%d", comma, (*next)++);
    sqlite3_str_appendall(sql, ")");
}

static void bind_condition(sqlite3_stmt *statement, unsigned char op, sqlite3_value *value, int *next)
{
    sqlite3_value *one;

    if (op) {
        sqlite3_bind_value(statement, (*next)++, value);
        return;
    }
    for (int answer = sqlite3_vtab_in_first(value, &one); answer == SQLITE_OK;
         answer = sqlite3_vtab_in_next(value, &one))
        sqlite3_bind_value(statement, (*next)++, one);
}

/* Goes through the conditions of a plan: adds them to *sql, or binds them. */
static void each_condition(const struct table *table, const char *plan, int count, sqlite3_value **values,
                           sqlite3_str *sql, sqlite3_stmt *statement)
{
    int column, next = 3;
    unsigned char op;

    for (int i = 0; i < count && (plan = plan_read(plan, table, &column, &op)); i++)
        if (sql)
            add_condition(sql, table->columns[column].name, op, values[i], &next);
        else
            bind_condition(statement, op, values[i], &next);
}

int verify_begin(struct verify *verify, struct trace_table *vtab, const char *plan, int count,
                 sqlite3_value **values)
{
    const struct table *table = vtab->table;
    const char *order;

    verify_end(verify);
    plan = plan ? plan : ""; /* NULL: an empty one */
    order = strstr(plan, "ORDER BY");
    if (vtab->trace->verifying)
        return SQLITE_OK;
    verify->order = !order ? 0 : strstr(order, "DESC") ? -1 : 1;
    verify->single = !table->arguments && asks_for_one(table, plan);
    if (!count)
        return SQLITE_OK;
    sqlite3_str *text = sqlite3_str_new(vtab->trace->db);
    sqlite3_str_appendall(text, "SELECT 1");
    each_condition(table, plan, count, values, text, NULL);
    sqlite3_str_appendf(text, " FROM %s WHERE %s = ?1", table->name, table->columns[table->id].name);
    if (table->arguments)
        sqlite3_str_appendall(text, " AND position = ?2");
    char *sql = sqlite3_str_finish(text);
    vtab->trace->verifying++;
    int answer = sql ? sqlite3_prepare_v2(vtab->trace->db, sql, -1, &verify->conditions, NULL) : SQLITE_NOMEM;
    vtab->trace->verifying--;
    sqlite3_free(sql);
    if (!answer)
        each_condition(table, plan, count, values, NULL, verify->conditions);
    return answer;
}

static bool is_in_order(const struct verify *verify, const struct verified_row *row)
{
    const struct verified_row *first = verify->order > 0 ? &verify->last : row;
    const struct verified_row *second = verify->order > 0 ? row : &verify->last;

    return !verify->order || first->time < second->time || (first->time == second->time &&
                                                            first->id <= second->id);
}

int verify_row(struct verify *verify, struct trace_table *vtab, const struct verified_row *row)
{
    struct trace *trace = vtab->trace;

    if (verify->any && verify->single)
        return trace_refuse(trace, SQLITE_INTERNAL, "verify: a second row of one event, %lld", row->id);
    if (verify->any && !is_in_order(verify, row))
        return trace_refuse(trace, SQLITE_INTERNAL, "verify: event %lld does not come in order", row->id);
    verify->any = true;
    verify->last = *row;
    if (!verify->conditions)
        return SQLITE_OK;
    sqlite3_bind_int64(verify->conditions, 1, row->id);
    sqlite3_bind_int64(verify->conditions, 2, row->position);
    trace->verifying++;
    int answer = sqlite3_step(verify->conditions);
    trace->verifying--;
    bool met = answer != SQLITE_ROW || sqlite3_column_int(verify->conditions, 0);
    sqlite3_reset(verify->conditions);
    if (!met)
        return trace_refuse(trace, SQLITE_INTERNAL, "verify: event %lld does not meet a condition", row->id);
    return answer == SQLITE_ROW || answer == SQLITE_DONE ? SQLITE_OK : answer;
}

void verify_end(struct verify *verify)
{
    sqlite3_finalize(verify->conditions);
    *verify = (struct verify){0};
}

#else
typedef int verify_nothing; /* ISO C wants a declaration in each file */
#endif
