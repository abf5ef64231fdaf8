/* Code objects: numbers, scope, arguments; see codes.h. */

#include "record/codes.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/path_text.h"
#include "format/event.h"
#include "record/define.h"
#include "record/lookup.h"
#include "record/secrets.h"
#include "record/text.h"
#include "record/values.h"
#include "record/variables.h"

Py_ssize_t codes_extra_index = -1;

static struct codes_config config;

/* Infos lie side by side, many in a page. So new ones cost a forked child one page to copy, while
 * malloc would find a place in another page for each. */
union place {
    struct code_info info;
    union place *next;
};
static union place *no_info; /* places without one */
static struct code_more *all_more;

/* ---- configuration ------------------------------------------------------------------------ */

#define PLACES 64 /* in a block, which is never freed */
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
    if (info->more != NULL) {
        *info->more->previous = info->more->next;
        if (info->more->next != NULL)
            info->more->next->previous = info->more->previous;
        variables_free(info->more->variables);
        PyMem_RawFree(info->more->sites);
    }
    PyMem_RawFree(info->more);
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

int codes_copy_list(char ***to, char **from)
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
    if (codes_copy_list(&config.modules, from->modules) || codes_copy_list(&config.exclude, from->exclude) ||
        copy_text(&config.stdlib_path, from->stdlib_path) || copy_text(&config.own_path, from->own_path) ||
        copy_text(&config.own_alias, from->own_alias) || copy_text(&config.directory, from->directory) ||
        copy_text(&config.made_up_file, from->made_up_file))
        return -1;
    config.site_packages = from->site_packages;
    config.stdlib = from->stdlib;
    config.values = from->values;
    config.lines = from->lines;
    config.c_calls = from->c_calls;
    return secrets_configure(from->redact);
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

bool codes_is_below_any(const char *file, char **paths)
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

/* The import system, and other frozen modules that run before and around the program. */
static const char *const frozen[] = {
    "<frozen importlib.", "<frozen zipimport>", "<frozen runpy>", "<frozen site>", "<frozen getpath>",
};

bool codes_is_stdlib(const char *file)
{
    return (is_below(file, config.stdlib_path) || starts_with(file, "<frozen ")) && !in_site_packages(file);
}

static bool is_pytrace(const char *file)
{
    return is_below(file, config.own_path) || (config.own_alias != NULL && strcmp(file, config.own_alias) == 0);
}

/* Nor frozen, nor made up (`<string>`), unless the whole program is. */
bool codes_is_mine(const char *file)
{
    if (*file == '<')
        return config.made_up_file != NULL && strcmp(file, config.made_up_file) == 0;
    return !in_site_packages(file) && !codes_is_stdlib(file) && !is_pytrace(file);
}

static enum scope scope_of(const char *file)
{
    for (size_t i = 0; i < sizeof frozen / sizeof *frozen; i++)
        if (starts_with(file, frozen[i]))
            return SCOPE_OUT;
    if (is_pytrace(file))
        return SCOPE_OUT;
    if (!config.site_packages && in_site_packages(file))
        return SCOPE_OUT;
    if (!config.stdlib && codes_is_stdlib(file))
        return SCOPE_OUT;
    if (config.exclude != NULL && codes_is_below_any(file, config.exclude))
        return SCOPE_OUT;
    if (config.modules != NULL && !codes_is_below_any(file, config.modules))
        return SCOPE_OUT;
    return SCOPE_IN;
}

/* Cython's file names are relative to the folder in which it ran, which nobody knows. So the source
 * is taken to stand beside the shared object (`globals` are those of its module), unless it is
 * below the folder of relative file names. Returns its length there, 0: it is not known. */
static size_t beside_module(char *buffer, size_t size, const char *name, PyObject *globals)
{
    static struct lookup_name file = {.text = "__file__"};
    char raw[FILE_NAME_MAX];
    const char *last = strrchr(name, '/');
    last = last != NULL ? last + 1 : name;
    size_t used = text_of(raw, sizeof raw - 1, lookup_item(globals, &file));
    raw[used] = 0;
    char *end = strrchr(raw, '/');
    if (raw[0] != '/' || (size_t)(end + 1 - raw) + strlen(last) >= sizeof raw)
        return 0;
    memcpy(end + 1, last, strlen(last) + 1);
    if (access(raw, F_OK) != 0) {
        char below[2 * FILE_NAME_MAX];
        snprintf(below, sizeof below, "%s/%s", config.directory != NULL ? config.directory : "", name);
        if (config.directory != NULL && access(below, F_OK) == 0)
            return 0;
    }
    size_t length = path_text((uint8_t *)buffer, size - 1, (const uint8_t *)raw, strlen(raw));
    buffer[length] = 0;
    return length;
}

/* The file's absolute name in the form of path_text.h, and a NUL. `<string>` and the like stay
 * as they are. `globals`: of the module, of Cython's code alone; else NULL. */
static size_t file_name(char *buffer, size_t size, PyCodeObject *code, PyObject *globals)
{
    uint8_t raw[FILE_NAME_MAX];
    size_t used = text_of((char *)raw, size < sizeof raw ? size : sizeof raw, code->co_filename);
    buffer[path_text((uint8_t *)buffer, size - 1, raw, used)] = 0;
    size_t length = strlen(buffer), before = 0;
    if (is_absolute(buffer))
        return length;
    char name[FILE_NAME_MAX];
    if (globals != NULL && (before = beside_module(name, size, buffer, globals)) > 0) {
        memcpy(buffer, name, before + 1);
        return before;
    }
    if (config.directory == NULL)
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

/* Bytes that file_name writes, at most. */
static size_t file_name_most(PyCodeObject *code, PyObject *globals)
{
    size_t before = config.directory != NULL ? strlen(config.directory) : 0;
    return globals != NULL ? FILE_NAME_MAX : before + 2 + text_most(code->co_filename, FILE_NAME_MAX);
}

static __attribute__((noinline)) enum scope scope_of_other(PyCodeObject *code, PyObject *globals)
{
    char name[FILE_NAME_MAX];
    file_name(name, sizeof name, code, globals);
    return scope_of(name);
}

/* Most names are absolute and ASCII, and need no copy. */
static enum scope scope_of_code(PyCodeObject *code, PyObject *globals)
{
    PyObject *file = code->co_filename;
    const char *name = PyUnicode_Check(file) && PyUnicode_IS_COMPACT_ASCII(file) ? PyUnicode_DATA(file) : "";
    return *name && is_absolute(name) && !strchr(name, '\\') ? scope_of(name) : scope_of_other(code, globals);
}

#define LANGUAGE_CYTHON 1 /* of proto/trace.proto, Code.Language */
#define MODULE_MAX 500
#define QUALNAME_MAX 1000

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

static struct code_more *more_of(struct code_info *info)
{
    if (info->more != NULL || (info->more = PyMem_RawCalloc(1, sizeof *info->more)) == NULL)
        return info->more;
    struct code_more *more = info->more;
    more->info = info;
    more->next = all_more;
    more->previous = &all_more;
    if (all_more != NULL)
        all_more->previous = &more->next;
    all_more = more;
    return more;
}

int codes_line(struct code_info *info, PyCodeObject *code, int offset)
{
    struct code_more *more = more_of(info);
    if (more != NULL && more->line_at == offset && more->line > 0)
        return more->line;
    STAT(line_looked);
    int line = PyCode_Addr2Line(code, offset);
    if (more != NULL) {
        more->line = line;
        more->line_at = offset;
    }
    return line;
}

static __attribute__((noinline)) bool is_own_code(PyCodeObject *code)
{
    char name[FILE_NAME_MAX];
    file_name(name, sizeof name, code, NULL);
    return codes_is_mine(name);
}

/* The variables of code whose lines are to be recorded; NULL for other code. */
static struct variables *variables_of(PyCodeObject *code, struct code_info *info)
{
    if (config.lines == 0 || info->cython || info->scope != SCOPE_IN || (config.lines == 1 && !is_own_code(code)))
        return NULL;
    struct code_more *more = more_of(info);
    if (more == NULL || (more->variables == NULL && (more->variables = variables_read(code)) == NULL))
        return NULL;
    return more->variables;
}

void codes_forget_listening(void)
{
    for (struct code_more *each = all_more; each != NULL; each = each->next)
        if (each->info->lines || each->info->c_calls)
            each->info->ready = false;
}

void codes_make_head(struct code_info *info)
{
    uint8_t *p = event_open(info->head, EVENT_CALL, info->number);
    *p++ = WIRE_TAG(EVENT_TIME, WIRE_VARINT);
    info->head_size = (uint8_t)(p - info->head);
}

bool codes_define(PyCodeObject *code, struct code_info *info, PyObject *globals)
{
    int count = argument_count(code);
    static struct lookup_name name = {.text = "__name__"};

    if (info->number)
        return true;
    STAT(code_defined);
    if (info->arguments == NULL)
        info->arguments = count <= CODE_FEW_ARGUMENTS ? info->few
                                                      : PyMem_RawCalloc((size_t)count, sizeof *info->arguments);
    if (info->arguments == NULL)
        return false;
    PyObject *module = lookup_item(globals, &name);
    size_t each = count ? 16384 / (size_t)count : 0;
    if (each > 256)
        each = 256;
    size_t size = 128 + text_most(module, MODULE_MAX) + text_most(code->co_qualname, QUALNAME_MAX) +
                  file_name_most(code, info->cython ? globals : NULL);
    for (int i = 0; i < count && size < DEFINITION_MAX; i++)
        size += 8 + text_most(slot_name(code, argument_slot(code, i)), each);
    struct variables *variables = variables_of(code, info);
    unsigned variable_count = variables != NULL && config.values ? variables->count : 0;
    size_t each_variable = variable_count ? 16384 / variable_count : 0;
    if (each_variable > 256)
        each_variable = 256;
    for (unsigned i = 0; i < variable_count && size < DEFINITION_MAX; i++)
        size += 8 + text_most(variables->all[i].name, each_variable);
    struct definition_writer writer;
    uint8_t *p = define_begin(&writer, DEFINITION_CODE, size < DEFINITION_MAX ? size : DEFINITION_MAX);
    if (p == NULL)
        return false;
    p = define_text(p, 2, module, MODULE_MAX);
    p = define_text(p, 3, code->co_qualname, QUALNAME_MAX);
    uint8_t *file = wire_open(p, 4);
    size_t file_size = file_name((char *)file, FILE_NAME_MAX, code, info->cython ? globals : NULL);
    bool mine = codes_is_mine((const char *)file); /* its length will take its NUL's place */
    p = wire_close(file, file + file_size);
    p = event_put(p, 5, (uint32_t)code->co_firstlineno);
    for (int i = 0; i < count; i++) {
        int slot = argument_slot(code, i);
        PyObject *argument = slot_name(code, slot);
        char kind = PyBytes_AS_STRING(code->co_localspluskinds)[slot];
        info->arguments[i].slot = (uint16_t)slot;
        info->arguments[i].cell = (kind & 0x40) != 0; /* CO_FAST_CELL */
        info->arguments[i].redacted = secrets_match(argument);
        info->arguments[i].special = info->arguments[i].cell || info->arguments[i].redacted;
        if ((size_t)(p - writer.fields) + each + 64 < DEFINITION_MAX)
            p = define_text(p, 6, argument, each);
    }
    p = event_put(p, 7, (uint32_t)code->co_flags);
    if (info->cython)
        p = event_put(p, 8, LANGUAGE_CYTHON);
    if (mine)
        p = event_put(p, 9, true);
    for (unsigned i = 0; i < variable_count && (size_t)(p - writer.fields) + each_variable + 64 < DEFINITION_MAX; i++)
        p = define_text(p, 10, variables->all[i].name, each_variable);
    uint32_t number = define_number(&writer, p);
    if (number >= 1u << 28) /* its head would not be copied in one word */
        return false;
    info->number = number;
    info->argument_count = !config.values || info->cython ? 0 : (uint16_t)(count < ARGUMENTS_MAX ? count : ARGUMENTS_MAX);
    info->generator = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
    info->coroutine = code->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR);
    info->lines = variables != NULL;
    info->c_calls = info->scope == SCOPE_IN && !info->cython && config.c_calls > (mine ? 0 : 1) && more_of(info) != NULL;
    codes_make_head(info);
    return true;
}

/* Arguments beyond this share the rest of the room, and are cut. */
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

void codes_of_cython(PyCodeObject *code)
{
    struct code_info *info = attach_info(code);
    if (info != NULL && !info->resolved)
        info->cython = true;
}

struct code_info *codes_resolve(PyCodeObject *code, PyObject *globals)
{
    struct code_info *info = attach_info(code);
    if (info == NULL)
        return NULL;
    if (!info->resolved) {
        STAT(code_resolved);
        info->scope = info->notrace ? SCOPE_NOTRACE : scope_of_code(code, info->cython ? globals : NULL);
        info->catches = PyBytes_GET_SIZE(code->co_exceptiontable) > 0;
        info->room = room_for(info->cython ? 0 : argument_count(code));
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
