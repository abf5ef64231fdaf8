/* Code objects and types: numbers, scope, arguments; codes.h tells what is promised. */

#include "codes.h"

#include <regex.h>
#include <stdlib.h>

#include "event.h"
#include "values.h"

Py_ssize_t codes_extra_index = -1;

static struct codes_config config;
static regex_t redact;
static bool has_redact;
static struct stream definitions; /* ring == NULL: nothing is recorded */

/* Infos lie side by side, many in a page: those that a forked child makes cost it one page to copy, where
 * the memory that malloc finds for each of them would be in another one each time. */
union place {
    struct code_info info;
    union place *next;
};
static union place *no_info; /* places without one */

/* ---- text --------------------------------------------------------------------------------- */

size_t codes_utf8(uint8_t *buffer, size_t size, PyObject *str, size_t characters, bool *cut)
{
    uint8_t *p = buffer;
    Py_ssize_t length = PyUnicode_GET_LENGTH(str), i = 0;
    int kind = PyUnicode_KIND(str);
    const void *data = PyUnicode_DATA(str);
    if (PyUnicode_IS_COMPACT_ASCII(str)) {
        size_t most = characters < size ? characters : size;
        *cut = (size_t)length > most;
        memcpy(buffer, data, *cut ? most : (size_t)length);
        return *cut ? most : (size_t)length;
    }
    for (; i < length && (size_t)i < characters; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, i);
        size_t room = size - (size_t)(p - buffer);
        if (c < 0x80) {
            if (room < 1)
                break;
            *p++ = (uint8_t)c;
        } else if (c < 0x800) {
            if (room < 2)
                break;
            *p++ = (uint8_t)(0xc0 | c >> 6);
            *p++ = (uint8_t)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            if (room < 3)
                break;
            *p++ = (uint8_t)(0xe0 | c >> 12);
            *p++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
            *p++ = (uint8_t)(0x80 | (c & 0x3f));
        } else {
            if (room < 4)
                break;
            *p++ = (uint8_t)(0xf0 | c >> 18);
            *p++ = (uint8_t)(0x80 | (c >> 12 & 0x3f));
            *p++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
            *p++ = (uint8_t)(0x80 | (c & 0x3f));
        }
    }
    *cut = i < length;
    return (size_t)(p - buffer);
}

/* UTF-8 of any object that is a str; nothing of others. */
static size_t text_of(char *buffer, size_t size, PyObject *object)
{
    bool cut;
    if (object == NULL || !PyUnicode_Check(object) || !compat_str_is_ready(object))
        return 0;
    return codes_utf8((uint8_t *)buffer, size, object, size, &cut);
}

/* Bytes that text_of writes, at most. */
static size_t most_of(PyObject *object, size_t size)
{
    size_t most = object != NULL && PyUnicode_Check(object) ? 4 * (size_t)PyUnicode_GET_LENGTH(object) : 0;
    return most < size ? most : size;
}

PyObject *codes_item(PyObject *dict, PyObject **key, const char *name)
{
    PyObject *found = NULL;
    if (*key != NULL || (*key = PyUnicode_InternFromString(name)) != NULL)
        found = PyDict_GetItemWithError(dict, *key);
    if (found == NULL)
        PyErr_Clear();
    return found;
}

size_t codes_qualified(char *buffer, size_t size, PyObject *module, PyObject *qualname)
{
    size_t length = size > 1 ? text_of(buffer, size - 1, module) : 0;
    if (length == 8 && memcmp(buffer, "builtins", 8) == 0)
        length = 0;
    if (length)
        buffer[length++] = '.';
    return length + text_of(buffer + length, size - length, qualname);
}

/* ---- configuration ------------------------------------------------------------------------ */

/* Answers for names seen lately, by address and hash: the same keys come again and again. */
static struct {
    PyObject *name; /* for comparison only */
    Py_hash_t hash;
    bool secret;
} secrets[256];

#define PLACES 64 /* in a block, which is never given back */
_Static_assert(sizeof(union place) == 64, "a cache line");

static struct code_info *make_info(void)
{
    if (no_info == NULL) {
        char *block = PyMem_RawMalloc((PLACES + 1) * sizeof(union place));
        if (block == NULL)
            return NULL;
        block += -(uintptr_t)block % sizeof(union place); /* each in a cache line of its own */
        for (size_t i = PLACES; i > 0; i--) {
            union place *place = (union place *)block + i - 1;
            place->next = no_info;
            no_info = place;
        }
    }
    union place *place = no_info;
    no_info = place->next;
    place->info = (struct code_info){0};
    return &place->info;
}

static void free_info(void *pointer)
{
    struct code_info *info = pointer;
    if (info == NULL)
        return;
    if (info->arguments != info->few)
        PyMem_RawFree(info->arguments);
    union place *place = pointer;
    place->next = no_info;
    no_info = place;
}

int codes_init(void)
{
    if (codes_extra_index < 0) {
        codes_extra_index = PyUnstable_Eval_RequestCodeExtraIndex(free_info);
        if (codes_extra_index < 0) {
            PyErr_SetString(PyExc_RuntimeError, "pytrace: no place left on code objects");
            return -1;
        }
    }
    return 0;
}

static int copy_text(char **to, const char *from)
{
    free(*to);
    *to = NULL;
    if (from != NULL && (*to = strdup(from)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static int copy_list(char ***to, char **from)
{
    size_t count = 0;
    if (*to != NULL)
        for (char **text = *to; *text != NULL; text++)
            free(*text);
    free(*to);
    *to = NULL;
    if (from == NULL)
        return 0;
    while (from[count] != NULL)
        count++;
    if ((*to = calloc(count + 1, sizeof **to)) == NULL)
        goto no_memory;
    for (size_t i = 0; i < count; i++)
        if (((*to)[i] = strdup(from[i])) == NULL)
            goto no_memory;
    return 0;
no_memory:
    PyErr_NoMemory();
    return -1;
}

int codes_configure(const struct codes_config *from)
{
    if (copy_list(&config.modules, from->modules) || copy_list(&config.exclude, from->exclude) ||
        copy_text(&config.stdlib_path, from->stdlib_path) || copy_text(&config.own_path, from->own_path) ||
        copy_text(&config.own_alias, from->own_alias) || copy_text(&config.directory, from->directory))
        return -1;
    config.site_packages = from->site_packages;
    config.stdlib = from->stdlib;
    config.values = from->values;
    if (has_redact)
        regfree(&redact);
    has_redact = false;
    memset(secrets, 0, sizeof secrets);
    if (from->redact != NULL) {
        char message[200];
        if (regcomp(&redact, from->redact, REG_EXTENDED | REG_ICASE | REG_NOSUB)) {
            PyErr_Format(PyExc_ValueError, "%s", codes_check_pattern(from->redact, message, sizeof message));
            return -1;
        }
        has_redact = true;
    }
    return 0;
}

const char *codes_check_pattern(const char *pattern, char *message, size_t size)
{
    regex_t compiled;
    int error = regcomp(&compiled, pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (error == 0) {
        regfree(&compiled);
        return NULL;
    }
    regerror(error, &compiled, message, size);
    return message;
}

/* ---- scope -------------------------------------------------------------------------------- */

#define FILE_NAME_MAX 4200

/* Is `file` this path, or below it? */
static bool is_below(const char *file, const char *path)
{
    if (path == NULL)
        return false;
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    return strncmp(file, path, size) == 0 && (file[size] == '/' || file[size] == 0 || size == 1);
}

static bool is_below_any(const char *file, char **paths)
{
    for (; *paths != NULL; paths++)
        if (is_below(file, *paths))
            return true;
    return false;
}

static bool in_site_packages(const char *file)
{
    return strstr(file, "/site-packages/") != NULL || strstr(file, "/dist-packages/") != NULL;
}

static bool is_absolute(const char *file) { return *file == '/' || *file == '<' || *file == 0; }

static bool starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

/* The import system, and what runs before and around the program as part of the interpreter. */
static const char *const frozen[] = {
    "<frozen importlib.", "<frozen zipimport>", "<frozen runpy>", "<frozen site>", "<frozen getpath>",
};

static enum scope scope_of(const char *file)
{
    for (size_t i = 0; i < sizeof frozen / sizeof *frozen; i++)
        if (starts_with(file, frozen[i]))
            return SCOPE_OUT;
    if (is_below(file, config.own_path) || (config.own_alias != NULL && strcmp(file, config.own_alias) == 0))
        return SCOPE_OUT;
    if (!config.site_packages && in_site_packages(file))
        return SCOPE_OUT;
    if (!config.stdlib && (is_below(file, config.stdlib_path) || starts_with(file, "<frozen "))
        && !in_site_packages(file))
        return SCOPE_OUT;
    if (config.exclude != NULL && is_below_any(file, config.exclude))
        return SCOPE_OUT;
    if (config.modules != NULL && !is_below_any(file, config.modules))
        return SCOPE_OUT;
    return SCOPE_IN;
}

/* The file's absolute name, and a NUL. `<string>` and the like stay as they are. */
static size_t file_name(char *buffer, size_t size, PyCodeObject *code)
{
    buffer[text_of(buffer, size - 1, code->co_filename)] = 0;
    size_t length = strlen(buffer), before = 0;
    if (is_absolute(buffer) || config.directory == NULL)
        return length;
    const char *rest = buffer;
    while (starts_with(rest, "./"))
        rest += 2;
    length -= (size_t)(rest - buffer);
    before = strnlen(config.directory, size - 2);
    bool slash = before == 0 || config.directory[before - 1] != '/';
    if (length > size - 1 - before - slash)
        length = size - 1 - before - slash;
    memmove(buffer + before + slash, rest, length);
    memcpy(buffer, config.directory, before);
    if (slash)
        buffer[before] = '/';
    length += before + slash;
    buffer[length] = 0;
    return length;
}

/* Bytes that it writes, at most. */
static size_t file_name_most(PyCodeObject *code)
{
    size_t before = config.directory != NULL ? strlen(config.directory) : 0;
    return before + 2 + most_of(code->co_filename, FILE_NAME_MAX);
}

static __attribute__((noinline)) enum scope scope_of_other(PyCodeObject *code)
{
    char name[FILE_NAME_MAX];
    file_name(name, sizeof name, code);
    return scope_of(name);
}

/* Most names are absolute and of ASCII, and stand ready. */
static enum scope scope_of_code(PyCodeObject *code)
{
    PyObject *file = code->co_filename;
    const char *name = PyUnicode_Check(file) && PyUnicode_IS_COMPACT_ASCII(file) ? PyUnicode_DATA(file) : "";
    return *name && is_absolute(name) ? scope_of(name) : scope_of_other(code);
}

/* ---- definitions -------------------------------------------------------------------------- */

void codes_open(struct ring *ring, uint32_t process)
{
    stream_open(&definitions, ring, process, 0, CHUNK_DEFINITIONS);
}

void codes_after_fork(void)
{
    stream_abandon(&definitions);
}

void codes_close(void)
{
    if (definitions.ring != NULL)
        stream_close(&definitions);
}

void codes_give_back(void)
{
    static uint64_t seen;
    uint64_t now = (uint64_t)definitions.sequence << 32 | definitions.count;
    if (definitions.ring != NULL && now == seen)
        stream_close(&definitions);
    seen = now;
}

#define DEFINITION_MAX (RING_MIN_CHUNK_SIZE / 2)
#define MODULE_MAX 500
#define QUALNAME_MAX 1000

/* A field with the text of an object, of at most `size` bytes. Written where it stays: a buffer on the stack
 * would be pages more for a forked child to copy. */
static uint8_t *put_text(uint8_t *p, int field, PyObject *object, size_t size)
{
    uint8_t *text = wire_open(p, field);
    return wire_close(text, text + text_of((char *)text, size, object));
}

/* A definition is: 0a LEN | KIND<<3|2 LEN | fields. NULL where there is no room now. */
static uint8_t *definition_open(int kind, size_t size, uint8_t **record, uint8_t **body)
{
    if (definitions.ring == NULL)
        return NULL;
    /* Asked first: a definition that finds no chunk is no event that is lost. It is tried again at the next one. */
    if ((size_t)(definitions.end - definitions.next) < size && !stream_claim(&definitions, size))
        return NULL;
    uint8_t *p = stream_reserve(&definitions, size);
    if (p == NULL)
        return NULL;
    *record = wire_open(p, 1);
    *body = wire_open(*record, kind);
    return *body;
}

static void definition_close(uint8_t *record, uint8_t *body, uint8_t *end)
{
    stream_commit(&definitions, wire_close(record, wire_close(body, end)));
}

/* Numbers by what was defined: a program that makes the same function again and again (eval, namedtuple) has
 * one definition of it, or its definitions would grow without end. Told by 64 bits of hash. */
struct known {
    uint64_t hash;
    uint32_t number; /* 0: free */
};
static struct known *known;
static size_t known_size, known_used; /* size: a power of two, or 0 */

static struct known *known_find(uint64_t hash)
{
    size_t at = hash & (known_size - 1);
    while (known[at].number && known[at].hash != hash)
        at = (at + 1) & (known_size - 1);
    return &known[at];
}

static bool known_grow(void)
{
    struct known *old = known;
    size_t old_size = known_size, size = old_size ? old_size * 2 : 4096;
    struct known *bigger = PyMem_RawCalloc(size, sizeof *bigger);
    if (bigger == NULL)
        return false;
    known = bigger;
    known_size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].number)
            *known_find(old[i].hash) = old[i];
    PyMem_RawFree(old);
    return true;
}

/* Ends a definition of which all but field 1, the number, stands from `body` to `end`: writes it with a new
 * number; or not, where this process or one that it was forked from has written the same, or where another's
 * is in the database. Returns the number. */
static uint32_t definition_number(int kind, uint8_t *record, uint8_t *body, uint8_t *end)
{
    uint64_t hash = ring_known_hash((uint32_t)kind, body, end);
    struct known *place = known_used * 2 < known_size || known_grow() ? known_find(hash) : NULL;
    if (place != NULL && place->number)
        return place->number;
    uint32_t number = ring_known_find(definitions.ring, hash);
    if (number == 0) {
        number = ring_next_number(definitions.ring);
        definition_close(record, body, event_put(end, 1, number));
    }
    if (place != NULL) {
        *place = (struct known){hash, number};
        known_used++;
    }
    return number;
}

bool codes_define_thread(uint32_t stream, uint64_t tid, const char *name, size_t size)
{
    uint8_t *record, *body;
    if (size > 1000)
        size = 1000;
    uint8_t *p = definition_open(3, size + 64, &record, &body);
    if (p == NULL)
        return false;
    p = event_put(p, 1, stream);
    p = event_put(p, 2, definitions.process);
    p = event_put(p, 3, tid);
    p = wire_put_bytes(p, 4, name, size);
    definition_close(record, body, p);
    return true;
}

bool codes_define_process(uint32_t parent, const char *command, size_t size, const char *python)
{
    uint8_t *record, *body;
    if (size > 16384)
        size = 16384;
    uint8_t *p = definition_open(4, size + strlen(python) + 64, &record, &body);
    if (p == NULL)
        return false;
    p = event_put(p, 1, definitions.process);
    p = event_put(p, 2, (uint64_t)getpid());
    p = event_put(p, 3, parent);
    p = wire_put_bytes(p, 4, command, size);
    p = wire_put_bytes(p, 5, python, strlen(python));
    definition_close(record, body, p);
    return true;
}

/* ---- code objects ------------------------------------------------------------------------- */

/* Each argument that is recorded needs VALUE_ROOM_MIN bytes in its call's record (see room_for). */
#define ARGUMENTS_MAX 400
_Static_assert(ARGUMENTS_MAX * VALUE_ROOM_MIN + 2 * EVENT_HEAD_MAX < RING_MIN_CHUNK_SIZE / 2, "");

static int argument_count(PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + !!(code->co_flags & CO_VARARGS) +
           !!(code->co_flags & CO_VARKEYWORDS);
}

/* Slots hold: positional, keyword-only, *args, **kw. In a signature *args stands before the
 * keyword-only ones. */
static int argument_slot(PyCodeObject *code, int position)
{
    int positional = code->co_argcount, keyword_only = code->co_kwonlyargcount;
    bool varargs = code->co_flags & CO_VARARGS;
    if (position < positional || !varargs)
        return position;
    if (position == positional)
        return positional + keyword_only;
    return position <= positional + keyword_only ? position - 1 : position;
}

static PyObject *slot_name(PyCodeObject *code, int slot) { return PyTuple_GET_ITEM(code->co_localsplusnames, slot); }

/* Asks the expression about a str or bytes; nothing of a class of the program's is called. */
static bool looks_secret(PyObject *name)
{
    char text[256];
    size_t size;
    if (PyUnicode_Check(name)) {
        size = text_of(text, sizeof text - 1, name);
    } else {
        size = (size_t)PyBytes_GET_SIZE(name) < sizeof text - 1 ? (size_t)PyBytes_GET_SIZE(name) : sizeof text - 1;
        memcpy(text, PyBytes_AS_STRING(name), size);
    }
    for (char *nul; (nul = memchr(text, 0, size)) != NULL;)
        *nul = ' '; /* the name goes on behind it */
    text[size] = 0;
    return regexec(&redact, text, 0, NULL, 0) == 0;
}

bool codes_secret(PyObject *name)
{
    if (!has_redact)
        return false;
    if (!PyUnicode_CheckExact(name) && !PyBytes_CheckExact(name)) /* may have a __hash__ of its own */
        return (PyUnicode_Check(name) || PyBytes_Check(name)) && looks_secret(name);
    Py_hash_t hash = PyObject_Hash(name);
    size_t at = (size_t)hash % (sizeof secrets / sizeof *secrets);
    if (secrets[at].name == name && secrets[at].hash == hash)
        return secrets[at].secret;
    secrets[at].name = name;
    secrets[at].hash = hash;
    return secrets[at].secret = looks_secret(name);
}

static void make_head(struct code_info *info)
{
    uint8_t *p = event_open(info->head, EVENT_CALL, info->number);
    *p++ = WIRE_TAG(EVENT_TIME, WIRE_VARINT);
    info->head_size = (uint8_t)(p - info->head);
}

bool codes_define(PyCodeObject *code, struct code_info *info, PyObject *globals)
{
    int count = argument_count(code);
    static PyObject *name_key;
    uint8_t *record, *body;

    if (info->number)
        return true;
    if (info->arguments == NULL)
        info->arguments = count <= CODE_FEW_ARGUMENTS ? info->few
                                                      : PyMem_RawCalloc((size_t)count, sizeof *info->arguments);
    if (info->arguments == NULL)
        return false;
    PyObject *module = globals != NULL && PyDict_Check(globals) ? codes_item(globals, &name_key, "__name__") : NULL;
    size_t each = count ? 16384 / (size_t)count : 0;
    if (each > 256)
        each = 256;
    size_t size = 128 + most_of(module, MODULE_MAX) + most_of(code->co_qualname, QUALNAME_MAX) + file_name_most(code);
    for (int i = 0; i < count && size < DEFINITION_MAX; i++)
        size += 8 + most_of(slot_name(code, argument_slot(code, i)), each);
    uint8_t *p = definition_open(1, size < DEFINITION_MAX ? size : DEFINITION_MAX, &record, &body);
    if (p == NULL)
        return false;
    p = put_text(p, 2, module, MODULE_MAX);
    p = put_text(p, 3, code->co_qualname, QUALNAME_MAX);
    uint8_t *file = wire_open(p, 4);
    p = wire_close(file, file + file_name((char *)file, FILE_NAME_MAX, code));
    p = event_put(p, 5, (uint32_t)code->co_firstlineno);
    for (int i = 0; i < count; i++) {
        int slot = argument_slot(code, i);
        PyObject *name = slot_name(code, slot);
        char kind = PyBytes_AS_STRING(code->co_localspluskinds)[slot];
        info->arguments[i].slot = (uint16_t)slot;
        info->arguments[i].cell = (kind & 0x40) != 0; /* CO_FAST_CELL */
        info->arguments[i].redacted = codes_secret(name);
        info->arguments[i].special = info->arguments[i].cell || info->arguments[i].redacted;
        if ((size_t)(p - body) + each + 64 < DEFINITION_MAX)
            p = put_text(p, 6, name, each);
    }
    p = event_put(p, 7, (uint32_t)code->co_flags);
    uint32_t number = definition_number(1, record, body, p);
    if (number >= 1u << 28) /* its head would not be copied in one word */
        return false;
    info->number = number;
    info->argument_count = !config.values ? 0 : (uint16_t)(count < ARGUMENTS_MAX ? count : ARGUMENTS_MAX);
    info->generator = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
    info->coroutine = code->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR);
    make_head(info);
    return true;
}

/* Arguments beyond this share the room that is left, and are cut. */
static uint32_t room_for(int arguments)
{
    size_t room = EVENT_HEAD_MAX + (size_t)arguments * (values_config.most + 2 * VALUE_ROOM_MIN);
    size_t most = RING_MIN_CHUNK_SIZE / 2 - EVENT_HEAD_MAX; /* a lost record may come before it */
    return (uint32_t)(room < most ? room : most);
}

static struct code_info *attach_info(PyCodeObject *code)
{
    struct code_info *info = codes_info(code);
    if (info != NULL)
        return info;
    info = make_info();
    if (info != NULL && PyUnstable_Code_SetExtra((PyObject *)code, codes_extra_index, info) < 0) {
        PyErr_Clear();
        free_info(info);
        return NULL;
    }
    if (info != NULL)
        compat_code_extra_trim(code, codes_extra_index);
    return info;
}

struct code_info *codes_resolve(PyCodeObject *code, PyObject *globals)
{
    struct code_info *info = attach_info(code);
    if (info == NULL)
        return NULL;
    if (!info->resolved) {
        info->scope = info->notrace ? SCOPE_NOTRACE : scope_of_code(code);
        info->catches = PyBytes_GET_SIZE(code->co_exceptiontable) > 0;
        info->room = room_for(argument_count(code));
        info->resolved = true;
    }
    if (info->scope == SCOPE_IN) {
        if (!codes_define(code, info, globals))
            return NULL;
        info->ready = true;
    }
    return info;
}

int codes_notrace(PyCodeObject *code)
{
    struct code_info *info = attach_info(code);
    if (info == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    info->notrace = true;
    info->ready = false;
    if (info->resolved)
        info->scope = SCOPE_NOTRACE;
    return 0;
}

/* ---- types -------------------------------------------------------------------------------- */

static struct type_info no_types[1];
struct type_table codes_types = {.slots = no_types, .mask = 0, .used = 1};

static bool types_grow(void)
{
    struct type_table old = codes_types;
    size_t size = old.slots == no_types ? 256 : (old.mask + 1) * 2;
    struct type_info *slots = PyMem_RawCalloc(size, sizeof *slots);
    if (slots == NULL)
        return false;
    codes_types = (struct type_table){slots, size - 1, old.slots == no_types ? 0 : old.used};
    if (old.slots == no_types)
        return true;
    for (size_t i = 0; i <= old.mask; i++)
        if (old.slots[i].type != NULL)
            *codes_type_slot(old.slots[i].type) = old.slots[i];
    PyMem_RawFree(old.slots);
    return true;
}

static const struct {
    PyTypeObject *type;
    enum type_kind kind;
    bool subclasses; /* are read like it */
} kinds[] = {
    {&PyBool_Type, KIND_BOOL, false},
    {&PyLong_Type, KIND_INT, true},
    {&PyFloat_Type, KIND_FLOAT, true},
    {&PyUnicode_Type, KIND_STR, true},
    {&PyBytes_Type, KIND_BYTES, true},
    {&PyTuple_Type, KIND_TUPLE, true},
    {&PyList_Type, KIND_LIST, true},
    {&PyDict_Type, KIND_DICT, true},
    {&PySet_Type, KIND_SET, true},
    {&PyFrozenSet_Type, KIND_SET, true},
    {&PyType_Type, KIND_CLASS, true},
    {&PyFunction_Type, KIND_FUNCTION, false},
    {&PyMethod_Type, KIND_METHOD, false},
    {&PyCFunction_Type, KIND_BUILTIN, false},
    {&PyModule_Type, KIND_MODULE, false},
    {&PyEllipsis_Type, KIND_ELLIPSIS, false},
};

static void classify(struct type_info *info, PyTypeObject *type)
{
    if (type == Py_TYPE(Py_None) || type == Py_TYPE(Py_NotImplemented)) {
        info->kind = type == Py_TYPE(Py_None) ? KIND_NONE : KIND_NOT_IMPLEMENTED;
        info->exact = true;
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (type == kinds[i].type || (kinds[i].subclasses && PyType_IsSubtype(type, kinds[i].type))) {
            info->kind = (uint8_t)kinds[i].kind;
            info->exact = type == kinds[i].type;
            return;
        }
    info->kind = PyType_FastSubclass(type, Py_TPFLAGS_BASE_EXC_SUBCLASS) ? KIND_EXCEPTION : KIND_OBJECT;
}

static PyObject *type_qualname(PyTypeObject *type)
{
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE ? ((PyHeapTypeObject *)type)->ht_qualname : NULL;
}

/* The module's name as the type has it, borrowed; NULL: none, or the name says it. */
static PyObject *type_module(PyTypeObject *type)
{
    static PyObject *key;
    bool has_one = type->tp_flags & Py_TPFLAGS_HEAPTYPE && type->tp_dict != NULL;
    return has_one ? codes_item(type->tp_dict, &key, "__module__") : NULL;
}

static Py_hash_t text_hash(PyObject *text)
{
    return text != NULL && PyUnicode_CheckExact(text) ? PyObject_Hash(text) : 0;
}

struct type_info *codes_type_info_cold(PyTypeObject *type)
{
    static struct type_info none; /* memory is short: an object of an unknown type */
    if (codes_types.used * 2 > codes_types.mask && !types_grow())
        return &none;
    struct type_info *info = codes_type_slot(type);
    unsigned version = type->tp_version_tag;
    if (info->type == type && info->version == version && version != 0)
        return info;
    PyObject *qualname = type_qualname(type);
    const void *name = qualname != NULL ? (const void *)qualname : type->tp_name;
    Py_hash_t hash = text_hash(qualname) ^ text_hash(type_module(type)) * 3;
    struct type_info now = {.type = type, .name = name, .hash = hash};
    classify(&now, type); /* even under the same name: what is no int any more must not be read like one */
    if (info->type != type || info->name != name || info->hash != hash || info->kind != now.kind) {
        codes_types.used += info->type == NULL;
        *info = now;
    }
    info->version = version;
    return info;
}

static uint32_t define_type(PyTypeObject *type)
{
    uint8_t *record, *body;
    char name[1024];
    size_t size;
    PyObject *qualname = type_qualname(type);
    uint8_t *p = definition_open(2, sizeof name + 64, &record, &body);
    if (p == NULL)
        return 0;
    if (qualname != NULL) {
        size = codes_qualified(name, sizeof name, type_module(type), qualname);
    } else {
        size = strnlen(type->tp_name, sizeof name);
        memcpy(name, type->tp_name, size);
    }
    p = wire_put_bytes(p, 2, name, size);
    return definition_number(2, record, body, p);
}

uint32_t codes_type(PyTypeObject *type)
{
    struct type_info *info = codes_type_info(type);
    if (info->number == 0 && info->type != NULL)
        info->number = define_type(type);
    return info->number;
}
