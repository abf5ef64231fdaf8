/* What the hook knows of each code object and type: its number in the recording, whether it is in
 * scope, and where its arguments are. Definitions go out here, through a stream of their own.
 *
 * All of it under the GIL.
 */
#ifndef PYTRACE_CODES_H
#define PYTRACE_CODES_H

#include "pycompat.h"
#include "ring.h"

enum scope {
    SCOPE_IN = 0,      /* recorded */
    SCOPE_OUT = 1,     /* not recorded, what it calls may be */
    SCOPE_NOTRACE = 2, /* neither it nor what it calls */
};

struct argument {
    uint16_t slot;     /* in the frame's locals */
    bool special : 1;  /* one of these: */
    bool cell : 1;     /* the slot holds a cell with the value */
    bool redacted : 1;
};

#define CODE_FEW_ARGUMENTS 4

/* Everything that recording an event of this code needs; hangs on the code object itself. */
struct code_info {
    bool ready;              /* in scope and defined: nothing stands against recording */
    uint8_t scope;           /* enum scope */
    bool resolved;           /* scope has been decided */
    bool notrace;            /* @notrace: stands above scope */
    bool catches;            /* has exception handlers */
    bool generator;          /* generator, coroutine or asynchronous generator */
    bool coroutine;          /* the same, but for a plain generator */
    uint8_t head_size;
    uint8_t head[14];        /* how each record of it begins; byte 2 is the kind's tag */
    uint16_t argument_count; /* to record: 0 where values are not asked for */
    uint32_t number;         /* 0: not defined yet */
    uint32_t room;           /* bytes that its call record may take */
    int line, line_at;       /* codes_line's last answer, and the offset; 0: none */
    struct argument *arguments; /* `few`, or for more of them, memory of their own */
    struct argument few[CODE_FEW_ARGUMENTS];
};

#define CODE_HEAD_KIND 2     /* where in `head` the kind's tag is */

struct codes_config {
    /* Absolute paths of files and folders, NULL-terminated; NULL: everything is in scope. */
    char **modules;
    char **exclude;
    bool site_packages, stdlib;
    bool values;             /* arguments are recorded */
    char *stdlib_path;
    char *own_path;          /* our package: never recorded */
    char *own_alias;         /* pytrace.py */
    char *directory;         /* what relative file names are relative to */
    char *redact;            /* POSIX extended regular expression, case ignored; NULL: none */
};

extern Py_ssize_t codes_extra_index;

/* Prepares; once per process. 0, or -1 with a Python exception. */
int codes_init(void);
/* Takes over a copy of config. 0, or -1 with a Python exception. All codes are decided anew. */
int codes_configure(const struct codes_config *config);
/* NULL, or what is wrong with this pattern (PyMem_Malloc'ed text). */
const char *codes_check_pattern(const char *pattern, char *message, size_t size);

/* Opens the definitions' stream in this recording. */
void codes_open(struct ring *ring, uint32_t process);
/* In a forked child: lets go of the parent's; nothing can be defined until codes_open. */
void codes_after_fork(void);
void codes_close(void);
/* The ring is well in use: seals the definitions' chunk if nothing has been defined since this was asked last. */
void codes_give_back(void);

/* The info that hangs on the code object, or NULL. */
static inline struct code_info *codes_info(PyCodeObject *code)
{
    return compat_code_extra(code, codes_extra_index);
}

/* The same; made, its scope decided (and, when in scope, defined) where that has not been done.
 * `globals`: of the frame, for the module's name; may be NULL. NULL, without an exception, where
 * memory or the ring is short: try again at the next event. */
struct code_info *codes_resolve(PyCodeObject *code, PyObject *globals);
/* Defines a code that is in no scope: log() may be called anywhere. False: no room now. */
bool codes_define(PyCodeObject *code, struct code_info *info, PyObject *globals);
/* The line of an instruction, at an offset in bytes; 0 or less: none. CPython reads its table from the beginning;
 * here the answer is kept, as a function mostly raises, awaits and logs at the same place again. */
static inline int codes_line(struct code_info *info, PyCodeObject *code, int offset)
{
    if (info->line_at != offset || info->line <= 0) {
        info->line = PyCode_Addr2Line(code, offset);
        info->line_at = offset;
    }
    return info->line;
}
/* Marks a code object: neither it nor what it calls. 0 or -1 with a Python exception. */
int codes_notrace(PyCodeObject *code);

/* How the content of an object is read. */
enum type_kind {
    KIND_OBJECT, /* not at all: type and address */
    KIND_NONE,
    KIND_BOOL,
    KIND_INT,
    KIND_FLOAT,
    KIND_STR,
    KIND_BYTES,
    KIND_TUPLE,
    KIND_LIST,
    KIND_DICT,
    KIND_SET,
    KIND_EXCEPTION,
    KIND_FUNCTION,
    KIND_METHOD,
    KIND_BUILTIN,
    KIND_MODULE,
    KIND_CLASS,
    KIND_ELLIPSIS,
    KIND_NOT_IMPLEMENTED,
};

struct type_info {
    PyTypeObject *type;  /* for comparison only, like the next three */
    unsigned version;
    const void *name;
    Py_hash_t hash;      /* of its name and its module's */
    uint32_t number;     /* 0: not defined yet; see codes_type */
    uint8_t kind;        /* enum type_kind */
    bool exact;          /* a built-in type itself, no subclass */
};

/* By address, open addressing. A type may die and another come to its place: then its version differs
 * (which is unique where it is not 0, and changes when the type does), or its name, the names' hash, or its
 * kind. */
struct type_table {
    struct type_info *slots;
    size_t mask, used; /* mask: slots - 1, their number being a power of two */
};
extern struct type_table codes_types;

struct type_info *codes_type_info_cold(PyTypeObject *type);

/* Where a type is, or would be. */
static inline struct type_info *codes_type_slot(const PyTypeObject *type)
{
    size_t at = (size_t)(((uint64_t)(uintptr_t)type >> 4) * 0x9E3779B97F4A7C15u >> 32) & codes_types.mask;
    while (codes_types.slots[at].type != type && codes_types.slots[at].type != NULL)
        at = (at + 1) & codes_types.mask;
    return &codes_types.slots[at];
}

/* What is known of a type. Valid until the next call. */
static inline struct type_info *codes_type_info(PyTypeObject *type)
{
    struct type_info *info = codes_type_slot(type);
    unsigned version = type->tp_version_tag;
    return info->type == type && info->version == version && version != 0 ? info : codes_type_info_cold(type);
}
/* The number of a type, defined at first sight; 0 where there is no room for its definition. */
uint32_t codes_type(PyTypeObject *type);

/* Does the name of an argument, or the key of a dict, look as if its value were a secret? Only a str and bytes
 * can, and what is derived from them; of a long one the first 255 bytes count. */
bool codes_secret(PyObject *name);

/* Definitions that hook.c makes. False: no room now. */
bool codes_define_thread(uint32_t stream, uint64_t tid, const char *name, size_t size);
bool codes_define_process(uint32_t parent, const char *command, size_t size, const char *python);

/* What a dictionary has under a name, borrowed; NULL, without an exception, where it has none. *key is NULL at
 * first, and keeps the name: to make it each time costs a thread and a forked child more than to look it up. */
PyObject *codes_item(PyObject *dict, PyObject **key, const char *name);

/* Is it a function's __module__ and __qualname__ in the form module.qualname? Writes UTF-8, at most
 * `size` bytes, returns how many. Objects that are no str are left out. */
size_t codes_qualified(char *buffer, size_t size, PyObject *module, PyObject *qualname);

/* UTF-8 of at most `characters` characters and `size` bytes of a str, lone surrogates as three
 * bytes. *cut tells whether anything was left out. */
size_t codes_utf8(uint8_t *buffer, size_t size, PyObject *str, size_t characters, bool *cut);

#endif
