/* Plans; see sqlite_plan.h. */
#include "query/sqlite_plan.h"
SQLITE_EXTENSION_INIT3

#include <string.h>

static const struct {
    unsigned char op; /* 0: IN */
    const char *text;
} operations[] = {
    {SQLITE_INDEX_CONSTRAINT_EQ, "=?"},     {SQLITE_INDEX_CONSTRAINT_LT, "<?"},
    {SQLITE_INDEX_CONSTRAINT_LE, "<=?"},    {SQLITE_INDEX_CONSTRAINT_GT, ">?"},
    {SQLITE_INDEX_CONSTRAINT_GE, ">=?"},    {SQLITE_INDEX_CONSTRAINT_LIKE, " LIKE?"},
    {SQLITE_INDEX_CONSTRAINT_MATCH, " MATCH?"}, {0, " IN?"},
};
enum { OPERATIONS = sizeof operations / sizeof *operations, OPERATION_IN = OPERATIONS - 1 };

static int find_operation(unsigned char op)
{
    for (int i = 0; i < OPERATION_IN; i++)
        if (operations[i].op == op)
            return i;
    return -1;
}

/* Whether LIKE means the same as in like.h. It does not after PRAGMA case_sensitive_like (off or
 * on), or if somebody has put a function in its place. */
static bool like_is_usual(sqlite3 *db)
{
    sqlite3_stmt *row;
    bool usual = !sqlite3_compileoption_used("CASE_SENSITIVE_LIKE");

    if (!usual || sqlite3_prepare_v2(db, "PRAGMA function_list", -1, &row, NULL))
        return false;
    while (usual && sqlite3_step(row) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(row, 0);
        bool builtin = sqlite3_column_int(row, 1);
        usual = builtin || !name || sqlite3_stricmp(name, "like") || sqlite3_column_int(row, 4) != 2;
    }
    sqlite3_finalize(row);
    return usual;
}

/* The operation for a constraint that is taken over; -1: it is left to SQLite. */
static int operation_for(sqlite3 *db, const struct table *table, sqlite3_index_info *info, int number)
{
    const struct sqlite3_index_constraint *constraint = &info->aConstraint[number];
    int operation = find_operation(constraint->op);

    if (operation < 0 || constraint->iColumn < 0)
        return -1;
    if (constraint->op == SQLITE_INDEX_CONSTRAINT_MATCH)
        return constraint->iColumn == table->match ? operation : -1;
    const struct column *column = &table->columns[constraint->iColumn];
    if (column->field < 0)
        return -1;
    if (!column->is_text)
        return constraint->op == SQLITE_INDEX_CONSTRAINT_LIKE ? -1 : operation;
    if (constraint->op == SQLITE_INDEX_CONSTRAINT_LIKE)
        return like_is_usual(db) ? operation : -1;
    if (constraint->op != SQLITE_INDEX_CONSTRAINT_EQ ||
        sqlite3_stricmp(sqlite3_vtab_collation(info, number), "BINARY"))
        return -1;
    return operation;
}

/* 1: rows come in the order of the query; 2: backwards; 0: in no such order. */
static int order_for(const struct table *table, const sqlite3_index_info *info)
{
    if (info->nOrderBy < 1 || info->nOrderBy > 2 || info->aOrderBy[0].iColumn != table->time)
        return 0;
    if (info->nOrderBy == 2 &&
        (info->aOrderBy[1].iColumn != table->id || info->aOrderBy[1].desc != info->aOrderBy[0].desc))
        return 0;
    return info->aOrderBy[0].desc ? 2 : 1;
}

/* Whether a column is used that follows from the open levels. */
static bool uses_levels(const struct table *table, const sqlite3_index_info *info)
{
    for (int i = 0; i < table->count; i++) {
        int field = table->columns[i].field;
        if (info->colUsed >> i & 1 &&
            (field == FIELD_OWN_DEPTH || field == FIELD_NEAR_DEPTH || field == FIELD_NEAR))
            return true;
    }
    return false;
}

/* Conditions on `event`, `argument` and `call` that are taken over, and their signs in the plan:
 *
 *   condition                          taken over                     plan         rows are thought to be
 *   on a number: = < <= > >=           always                         time>=?      1 in 20 (=), 1 in 4
 *   on a text: =                       where it compares by BINARY    func=?       1 in 20
 *   on a text: LIKE                    where LIKE is SQLite's own     func LIKE?   1 in 4
 *   IN, of either                      as its =                       kind IN?     1 in 20
 *   MATCH, on the table                always; else there is no plan  event MATCH? 1 in 4
 *   the id, =                          then it is a look-up           id=?         1, of arguments 4
 *   OFFSET                             where all conditions are, and  OFFSET?
 *                                      no order or ours is asked for
 *   ORDER BY time [, id], both ways    always                         ORDER BY time DESC
 *   any other (IS, <>, GLOB, OR, a     never: SQLite looks at each
 *   collation, hidden args)            row that the others leave
 *
 * SQLite does not test again the conditions that are taken over (`omit`); in builds for tests
 * sqlite_verify.c does. The cost of a scan is the number of its rows, and 1000; of a look-up 10.
 * idxNum is of PLAN_DESCENDING, PLAN_LEVELS.
 */
int plan_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    const struct table *table = ((struct trace_table *)vtab)->table;
    sqlite3 *db = ((struct trace_table *)vtab)->trace->db;
    sqlite3_str *plan = sqlite3_str_new(NULL);
    int arguments = 0, offset = -1;
    bool single = false, all = true;
    double rows = 1e8;

    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
        if (constraint->op == SQLITE_INDEX_CONSTRAINT_OFFSET ||
            constraint->op == SQLITE_INDEX_CONSTRAINT_LIMIT) {
            if (constraint->op == SQLITE_INDEX_CONSTRAINT_OFFSET && constraint->usable)
                offset = i;
            continue;
        }
        int operation = operation_for(db, table, info, i);
        if (!constraint->usable && constraint->op == SQLITE_INDEX_CONSTRAINT_MATCH) {
            sqlite3_free(sqlite3_str_finish(plan));
            return SQLITE_CONSTRAINT; /* nobody else can answer it */
        }
        if (operation < 0 || !constraint->usable) {
            all = false;
            continue;
        }
        if (constraint->op == SQLITE_INDEX_CONSTRAINT_EQ && sqlite3_vtab_in(info, i, 1))
            operation = OPERATION_IN;
        info->aConstraintUsage[i].argvIndex = ++arguments;
        info->aConstraintUsage[i].omit = 1;
        sqlite3_str_appendf(plan, "%s%s%s", arguments > 1 ? " " : "",
                            table->columns[constraint->iColumn].name,
                            operations[operation].text);
        if (constraint->op == SQLITE_INDEX_CONSTRAINT_EQ && constraint->iColumn == table->id &&
            operation != OPERATION_IN)
            single = true;
        rows /= constraint->op == SQLITE_INDEX_CONSTRAINT_EQ ? 20 : 4;
    }
    int order = order_for(table, info);
    if (offset >= 0 && all && (order || !info->nOrderBy)) {
        info->aConstraintUsage[offset].argvIndex = ++arguments;
        info->aConstraintUsage[offset].omit = 1;
        sqlite3_str_appendf(plan, "%sOFFSET?", arguments > 1 ? " " : "");
    }
    if (order) {
        info->orderByConsumed = 1;
        sqlite3_str_appendf(plan, "%sORDER BY time%s", arguments ? " " : "", order == 2 ? " DESC" : "");
    }
    info->idxNum = (order == 2 ? PLAN_DESCENDING : 0) | (uses_levels(table, info) ? PLAN_LEVELS : 0);
    info->estimatedRows = single ? table->arguments ? 4 : 1 : (sqlite3_int64)(rows + 1);
    info->estimatedCost = single ? 10 : rows + 1000;
    if (single && !table->arguments)
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    int answer = sqlite3_str_errcode(plan);
    info->idxStr = sqlite3_str_finish(plan); /* NULL: empty */
    info->needToFreeIdxStr = 1;
    return answer;
}

const char *plan_read(const char *plan, const struct table *table, int *column, unsigned char *op)
{
    while (*plan == ' ')
        plan++;
    for (int i = 0; i < table->count; i++) {
        size_t size = strlen(table->columns[i].name);
        if (strncmp(plan, table->columns[i].name, size))
            continue;
        for (int j = 0; j < OPERATIONS; j++) {
            size_t more = strlen(operations[j].text);
            if (!strncmp(plan + size, operations[j].text, more)) {
                *column = i;
                *op = operations[j].op;
                return plan + size + more;
            }
        }
    }
    return NULL;
}
