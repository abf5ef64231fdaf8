/* Variables and lines of code objects; see variables.h. */

#include "record/variables.h"

#include <opcode.h>

#include "record/lookup.h"
#include "record/secrets.h"


/* ---- the table of lines: InternalDocs/code_objects.md, before 3.13 Objects/locations.md ------ */

struct positions {
    const uint8_t *next, *end;
    int line;      /* of the units up to `until`; 0: none */
    int computed;  /* the line that the next entry counts from */
    size_t until;  /* in code units */
};

static unsigned read_varint(struct positions *at)
{
    unsigned result = 0;
    for (unsigned shift = 0; at->next < at->end && shift < 30; shift += 6) {
        uint8_t byte = *at->next++;
        result |= (unsigned)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return result;
}

static int read_signed(struct positions *at)
{
    unsigned n = read_varint(at);
    return n & 1 ? -(int)(n >> 1) : (int)(n >> 1);
}

enum { SHORT_FORMS = 10, ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };

/* The next entry; false at the end. */
static bool next_position(struct positions *at)
{
    if (at->next >= at->end)
        return false;
    unsigned first = *at->next++, form = first >> 3 & 15;
    at->until += (first & 7) + 1;
    if (form == LONG || form == NO_COLUMNS)
        at->computed += read_signed(at);
    else if (form >= ONE_LINE && form < NO_COLUMNS)
        at->computed += (int)form - ONE_LINE;
    at->line = form == NO_LINE ? 0 : at->computed;
    /* the entries' other bytes: only a first byte has the highest bit */
    while (at->next < at->end && !(*at->next & 0x80))
        at->next++;
    return true;
}

/* ---- bytecode ------------------------------------------------------------------------------- */

/* What one instruction stores. */
struct stores {
    int slots[2], count; /* slots; or */
    int name;            /* an index of co_names; -1: none */
    bool global;
    uint8_t effects;
};

static void add_slot(struct stores *stores, int slot) { stores->slots[stores->count++] = slot; }

#define IN_PLACE_FIRST 13 /* NB_INPLACE_ADD */
#define IN_PLACE_LAST 25  /* NB_INPLACE_XOR */

static struct stores stores_of(int opcode, int oparg)
{
    struct stores stores = {.name = -1};
    switch (opcode) {
    case STORE_FAST:
    case DELETE_FAST:
    case STORE_DEREF:
    case DELETE_DEREF:
    case MAKE_CELL:
#ifdef LOAD_FAST_AND_CLEAR
    case LOAD_FAST_AND_CLEAR:
#endif
        add_slot(&stores, oparg);
        break;
#ifdef STORE_FAST_LOAD_FAST
    case STORE_FAST_LOAD_FAST:
        add_slot(&stores, oparg >> 4);
        break;
    case STORE_FAST_STORE_FAST:
        add_slot(&stores, oparg >> 4);
        add_slot(&stores, oparg & 15);
        break;
#endif
    case STORE_NAME:
    case DELETE_NAME:
        stores.name = oparg;
        break;
    case STORE_GLOBAL:
    case DELETE_GLOBAL:
        stores.name = oparg;
        stores.global = true;
        break;
    case BINARY_OP:
        if (oparg >= IN_PLACE_FIRST && oparg <= IN_PLACE_LAST)
            stores.effects = LINE_IN_PLACE;
        break;
    case CALL:
    case CALL_FUNCTION_EX:
#ifdef CALL_KW
    case CALL_KW:
#endif
#ifdef CALL_INTRINSIC_1
    case CALL_INTRINSIC_1:
    case CALL_INTRINSIC_2:
    case STORE_SLICE:
#endif
#ifdef IMPORT_STAR
    case IMPORT_STAR:
#endif
#ifdef BEFORE_WITH
    case BEFORE_WITH:
    case BEFORE_ASYNC_WITH:
#endif
    case WITH_EXCEPT_START:
    case STORE_SUBSCR:
    case DELETE_SUBSCR:
    case STORE_ATTR:
    case DELETE_ATTR:
    case IMPORT_NAME:
    case IMPORT_FROM:
    case SEND:
    case YIELD_VALUE:
    case GET_AWAITABLE:
    case GET_AITER:
    case GET_ANEXT:
    case END_ASYNC_FOR:
    case LIST_EXTEND:
    case SET_UPDATE:
    case DICT_UPDATE:
    case DICT_MERGE:
    case UNPACK_SEQUENCE:
    case UNPACK_EX:
        stores.effects = LINE_RUNS;
        break;
    }
    return stores;
}

/* Walks over a code object's instructions with their lines. */
struct walk {
    const uint8_t *code;
    size_t units, at;
    struct positions position;
    int line;
    struct stores stores;
};

static bool next_instruction(struct walk *walk)
{
    int oparg = 0;
    while (walk->at < walk->units) {
        while (walk->at >= walk->position.until)
            if (!next_position(&walk->position))
                return false;
        int opcode = walk->code[2 * walk->at];
        oparg = oparg << 8 | walk->code[2 * walk->at + 1];
        walk->at++;
        if (opcode == EXTENDED_ARG)
            continue;
        walk->line = walk->position.line;
        walk->stores = stores_of(opcode, oparg);
        return true;
    }
    return false;
}

static struct walk begin_walk(PyCodeObject *code, PyObject *bytes)
{
    const uint8_t *table = (const uint8_t *)PyBytes_AS_STRING(code->co_linetable);
    return (struct walk){
        .code = (const uint8_t *)PyBytes_AS_STRING(bytes),
        .units = (size_t)PyBytes_GET_SIZE(bytes) / 2,
        .position = {.next = table, .end = table + PyBytes_GET_SIZE(code->co_linetable), .computed = code->co_firstlineno},
    };
}

/* ---- a code object -------------------------------------------------------------------------- */

#define LINES_MAX (1 << 20) /* a table that claims more makes no sense */

/* Names that the compiler makes, and no program has. */
static bool is_hidden(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "__classdict__") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "__conditional_annotations__") == 0;
}

static void set_variable(struct variable *variable, enum variable_kind kind, PyObject *name)
{
    variable->kind = is_hidden(name) ? VARIABLE_HIDDEN : kind;
    variable->name = name;
    variable->redacted = secrets_match(name);
}

static void add_slots(struct variables *variables, PyCodeObject *code, int arguments)
{
    for (int slot = 0; slot < code->co_nlocalsplus && slot < VARIABLES_MAX; slot++) {
        struct variable *variable = &variables->all[variables->count++];
        unsigned kind = (unsigned char)PyBytes_AS_STRING(code->co_localspluskinds)[slot];
        bool cell = kind & (0x40 | 0x80); /* CO_FAST_CELL, CO_FAST_FREE */
        set_variable(variable, cell ? VARIABLE_CELL : VARIABLE_LOCAL, PyTuple_GET_ITEM(code->co_localsplusnames, slot));
        variable->slot = (uint16_t)slot;
        variable->argument = slot < arguments;
    }
}

/* The number of a variable that is stored by its name; -1: it is none. `numbers`: by name and
 * whether it is global, 1 + the number. */
static int name_number(struct variables *variables, PyCodeObject *code, uint16_t *numbers, int name, bool global)
{
    if (name >= PyTuple_GET_SIZE(code->co_names))
        return -1;
    uint16_t *number = &numbers[2 * name + global];
    if (*number == 0 && variables->count < VARIABLES_MAX) {
        set_variable(&variables->all[variables->count], global ? VARIABLE_GLOBAL : VARIABLE_NAME,
                     PyTuple_GET_ITEM(code->co_names, name));
        *number = ++variables->count;
    }
    return (int)*number - 1;
}

struct maker {
    PyCodeObject *code;
    PyObject *bytes;
    uint16_t *numbers; /* see name_number; NULL: names are no variables here */
    struct variables *variables;
};

/* Calls `add` for each variable that an instruction stores, with its line's entry. */
static void each_store(struct maker *maker, void (*add)(struct variables *, struct line_stores *, int))
{
    struct variables *variables = maker->variables;
    struct walk walk = begin_walk(maker->code, maker->bytes);
    while (next_instruction(&walk)) {
        uint32_t at = (uint32_t)walk.line - (uint32_t)variables->first_line;
        struct line_stores *line = &variables->lines[walk.line > 0 && at < variables->line_count ? at : variables->line_count];
        line->effects |= walk.stores.effects;
        for (int i = 0; i < walk.stores.count; i++)
            if (walk.stores.slots[i] < maker->code->co_nlocalsplus && walk.stores.slots[i] < VARIABLES_MAX)
                add(variables, line, walk.stores.slots[i]);
        if (walk.stores.name >= 0 && maker->numbers != NULL) {
            int number = name_number(variables, maker->code, maker->numbers, walk.stores.name, walk.stores.global);
            if (number >= 0)
                add(variables, line, number);
        }
    }
}

static void count_store(struct variables *variables, struct line_stores *line, int number)
{
    (void)variables;
    (void)number;
    line->first++; /* for now, their number */
}

static void add_store(struct variables *variables, struct line_stores *line, int number)
{
    uint16_t *stored = variables->stored + line->first;
    for (uint16_t i = 0; i < line->count; i++)
        if (stored[i] == number)
            return;
    if (line->count < UINT16_MAX)
        stored[line->count++] = (uint16_t)number;
}

static bool make_lines(struct maker *maker)
{
    struct variables *variables = maker->variables;
    struct walk walk = begin_walk(maker->code, maker->bytes);
    int first = 0, last = 0;
    while (next_instruction(&walk)) {
        if (walk.line <= 0)
            continue;
        first = first == 0 || walk.line < first ? walk.line : first;
        last = walk.line > last ? walk.line : last;
    }
    variables->first_line = first;
    if (last > 0 && last - first < LINES_MAX)
        variables->line_count = (uint32_t)(last - first) + 1;
    variables->lines = PyMem_RawCalloc(variables->line_count + 1, sizeof *variables->lines);
    if (variables->lines == NULL)
        return false;
    each_store(maker, count_store);
    uint32_t total = 0;
    for (uint32_t i = 0; i <= variables->line_count; i++) {
        uint32_t count = variables->lines[i].first;
        variables->lines[i].first = total;
        total += count;
    }
    variables->stored = PyMem_RawCalloc(total + 1, sizeof *variables->stored);
    if (variables->stored == NULL)
        return false;
    each_store(maker, add_store);
    return true;
}

struct variables *variables_read(PyCodeObject *code)
{
    bool named = !(code->co_flags & CO_OPTIMIZED); /* a module or class body */
    size_t names = named ? (size_t)PyTuple_GET_SIZE(code->co_names) : 0;
    size_t most = (size_t)code->co_nlocalsplus + 2 * names;
    int arguments = code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
                    !!(code->co_flags & CO_VARKEYWORDS);
    if (most > VARIABLES_MAX)
        most = VARIABLES_MAX;
    struct maker maker = {.code = code, .bytes = PyCode_GetCode(code)};
    maker.variables = PyMem_RawCalloc(1, sizeof *maker.variables + most * sizeof maker.variables->all[0]);
    maker.numbers = named ? PyMem_RawCalloc(2 * names + 1, sizeof *maker.numbers) : NULL;
    bool made = maker.bytes != NULL && maker.variables != NULL && (!named || maker.numbers != NULL);
    if (made) {
        add_slots(maker.variables, code, arguments);
        made = make_lines(&maker);
    }
    if (maker.bytes == NULL)
        PyErr_Clear();
    Py_XDECREF(maker.bytes);
    PyMem_RawFree(maker.numbers);
    if (!made) {
        if (maker.variables != NULL) {
            PyMem_RawFree(maker.variables->lines);
            PyMem_RawFree(maker.variables->stored);
        }
        PyMem_RawFree(maker.variables);
        return NULL;
    }
    return maker.variables;
}

void variables_free(struct variables *variables)
{
    if (variables == NULL)
        return;
    PyMem_RawFree(variables->lines);
    PyMem_RawFree(variables->stored);
    PyMem_RawFree(variables);
}

PyObject *variables_find_name(PyObject *mapping, PyObject *name, uint32_t *place)
{
    if (mapping == NULL || !PyDict_CheckExact(mapping))
        return NULL;
    PyDictObject *dict = (PyDictObject *)mapping;
    PyDictKeysObject *keys = dict->ma_keys;
    bool plain = dict->ma_values == NULL && DK_IS_UNICODE(keys);
    if (plain && *place < (uint32_t)keys->dk_nentries && DK_UNICODE_ENTRIES(keys)[*place].me_key == name)
        return DK_UNICODE_ENTRIES(keys)[*place].me_value;
    PyObject *value = lookup_string(mapping, name);
    for (Py_ssize_t i = 0; value != NULL && plain && i < keys->dk_nentries && i < LOOKUP_MOST; i++)
        if (DK_UNICODE_ENTRIES(keys)[i].me_key == name) {
            *place = (uint32_t)i;
            break;
        }
    return value;
}
