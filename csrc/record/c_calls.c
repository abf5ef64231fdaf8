/* Functions in C: their names, and the places that call them; see c_calls.h. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* see got.h */
#endif
#include "record/c_calls.h"

#include "common/utf8.h"
#include "record/define.h"
#include "record/got.h"
#include "record/lookup.h"
#include "record/text.h"

static bool exact;
static PyObject *own_module;
static PyTypeObject *bound_wrapper; /* of a slot wrapper that is bound */

int c_calls_configure(bool is_exact, PyObject *own)
{
    exact = is_exact;
    own_module = own;
    PyObject *one = PyObject_GetAttrString(Py_None, "__repr__");
    bound_wrapper = one != NULL ? Py_TYPE(one) : NULL;
    Py_XDECREF(one);
    return one != NULL ? 0 : -1;
}

/* ---- names ---------------------------------------------------------------------------------- */

#define MODULE_MAX 500
#define QUALNAME_MAX 1000
#define LANGUAGE_C 2 /* of proto/trace.proto, Code.Language */

/* A function's name, as UTF-8. */
struct name {
    char module[MODULE_MAX], func[QUALNAME_MAX];
    size_t module_size, func_size;
};

/* C's texts may be anything. */
static size_t put_text(char *to, size_t size, const char *text, size_t length)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + length;
    uint8_t *out = (uint8_t *)to, *limit = out + size;
    while (p < end) {
        uint32_t code = *p;
        size_t read = code < 0x80 ? 1 : utf8_get(p, end, &code);
        if ((size_t)(limit - out) < (read ? read : 1))
            break;
        if (read)
            memcpy(out, p, read);
        else
            *out = '?';
        p += read ? read : 1;
        out += read ? read : 1;
    }
    return (size_t)(out - (uint8_t *)to);
}

static void add_func(struct name *name, const char *text)
{
    size_t left = sizeof name->func - name->func_size;
    name->func_size += put_text(name->func + name->func_size, left, text, strnlen(text, left));
}

static void name_type(struct name *name, PyTypeObject *type)
{
    static struct lookup_name module = {.text = "__module__"};
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        name->module_size =
            text_of(name->module, sizeof name->module, lookup_item(compat_type_dict(type), &module));
        name->func_size = text_of(name->func, sizeof name->func, ((PyHeapTypeObject *)type)->ht_qualname);
        return;
    }
    const char *whole = type->tp_name, *dot = strrchr(whole, '.');
    if (dot == NULL)
        name->module_size = put_text(name->module, sizeof name->module, "builtins", strlen("builtins"));
    else
        name->module_size = put_text(name->module, sizeof name->module, whole, (size_t)(dot - whole));
    add_func(name, dot != NULL ? dot + 1 : whole);
}

static void name_member(struct name *name, PyTypeObject *type, const char *member)
{
    name_type(name, type);
    add_func(name, ".");
    add_func(name, member);
}

/* The type among a type and its bases that defines a method; NULL: none. Methods of ours that stand
 * in the place of the interpreter's have the same names (closed.c). */
static PyTypeObject *find_owner(PyTypeObject *type, const PyMethodDef *def)
{
    PyObject *mro = type->tp_mro;
    for (int by_name = 0; by_name < 2; by_name++)
        for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
            PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
            for (const PyMethodDef *each = base->tp_methods; each != NULL && each->ml_name != NULL; each++)
                if (each == def || (by_name && strcmp(each->ml_name, def->ml_name) == 0))
                    return base;
        }
    return NULL;
}

static void name_builtin(struct name *name, const PyCFunctionObject *function)
{
    static struct lookup_name module_name = {.text = "__name__"};
    PyObject *self = function->m_self, *module = function->m_module;
    if ((module == NULL || !PyUnicode_Check(module)) && self != NULL && PyModule_Check(self))
        module = lookup_item(PyModule_GetDict(self), &module_name);
    if (module == NULL && self != NULL) {
        PyTypeObject *owner = PyType_Check(self) ? find_owner((PyTypeObject *)self, function->m_ml) : NULL;
        if (owner == NULL)
            owner = find_owner(Py_TYPE(self), function->m_ml);
        name_member(name, owner != NULL ? owner : Py_TYPE(self), function->m_ml->ml_name);
        return;
    }
    name->module_size = text_of(name->module, sizeof name->module, module);
    add_func(name, function->m_ml->ml_name);
}

/* A function of Cython's: its qualified name, made by a getter of its type, which is Cython's. */
static void name_cython(struct name *name, PyObject *object, PyTypeObject *type)
{
    static struct lookup_name qualname = {.text = "__qualname__"};
    const PyCFunctionObject *function = (PyCFunctionObject *)object;
    PyObject *getter = lookup_item(compat_type_dict(type), &qualname), *found = NULL;
    if (getter != NULL && Py_IS_TYPE(getter, &PyGetSetDescr_Type)) {
        const PyGetSetDef *def = ((PyGetSetDescrObject *)getter)->d_getset;
        if (def->get != NULL && (found = def->get(object, def->closure)) == NULL)
            PyErr_Clear();
    }
    name->module_size = text_of(name->module, sizeof name->module, function->m_module);
    name->func_size = text_of(name->func, sizeof name->func, found);
    if (name->func_size == 0)
        add_func(name, function->m_ml->ml_name);
    Py_XDECREF(found);
}

/* Defines a function. False: there is no room now. */
static bool define(struct code_info *info, const struct name *name)
{
    static const char argument[] = "arg0";
    struct definition_writer writer;
    uint8_t *p = define_begin(&writer, DEFINITION_CODE, sizeof *name + 128);
    if (p == NULL)
        return false;
    p = wire_put_bytes(p, 2, name->module, name->module_size);
    p = wire_put_bytes(p, 3, name->func, name->func_size);
    p = wire_put_bytes(p, 6, argument, sizeof argument - 1);
    p = event_put(p, 8, LANGUAGE_C);
    uint32_t number = define_number(&writer, p);
    if (number >= 1u << 28) /* its head would not be copied in one word */
        return false;
    info->number = number;
    codes_make_head(info);
    info->ready = true;
    return true;
}

/* ---- which function it is ------------------------------------------------------------------- */

/* By key, with open addressing. What was found stays. */
struct slot {
    const void *key;
    struct c_function *function;
};
static struct slot *slots;
static size_t mask, used; /* mask: slots - 1, their number being a power of two */

static struct slot *slot_of(const void *key)
{
    size_t at = (size_t)(((uint64_t)(uintptr_t)key >> 3) * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (slots[at].key != key && slots[at].key != NULL)
        at = (at + 1) & mask;
    return &slots[at];
}

static bool grow(void)
{
    struct slot *old = slots;
    size_t count = old != NULL ? mask + 1 : 0, size = old != NULL ? count * 2 : 256;
    struct slot *larger = PyMem_RawCalloc(size, sizeof *larger);
    if (larger == NULL)
        return false;
    slots = larger;
    mask = size - 1;
    for (size_t i = 0; i < count; i++)
        if (old[i].key != NULL)
            *slot_of(old[i].key) = old[i];
    PyMem_RawFree(old);
    return true;
}

static struct c_function *add(const void *key)
{
    if ((slots == NULL || used * 2 > mask) && !grow())
        return NULL;
    struct slot *slot = slot_of(key);
    if (slot->key == NULL) {
        if ((slot->function = PyMem_RawCalloc(1, sizeof *slot->function)) == NULL)
            return NULL;
        slot->key = slot->function->key = key;
        used++;
    }
    return slot->function;
}

/* What a callable is defined by. */
enum definer { BY_BUILTIN, BY_METHOD, BY_WRAPPER, BY_BOUND_WRAPPER, BY_TYPE, BY_CYTHON, BY_OBJECT };

/* Objects/descrobject.c: a slot wrapper that is bound */
struct bound_wrapper {
    PyObject_HEAD
    PyWrapperDescrObject *descriptor;
    PyObject *self;
};

/* Whether the shared object with a function in C reports its functions: it imports what Cython
 * calls for that. (greenlet imports the first of these two, too.) */
static bool reports(const PyMethodDef *def)
{
    uintptr_t address = (uintptr_t)def->ml_meth;
#if COMPAT_MADE_FRAMES
    return got_imports(address, "PyThreadState_EnterTracing") && got_imports(address, "PyFrame_New");
#else
    return got_imports(address, "PyMonitoring_EnterScope");
#endif
}

/* A function that is new, or new in this place. */
static __attribute__((noinline)) struct c_function *find_new(const void *key, const void *check, enum definer by,
                                                             PyObject *callable)
{
    struct c_function *function = add(key);
    if (function == NULL)
        return NULL;
    if (function->check == check && !function->info.ready)
        return NULL; /* one of ours */
    struct name name;
    name.module_size = name.func_size = 0;
    const PyWrapperDescrObject *wrapper = (PyWrapperDescrObject *)callable;
    switch (by) {
    case BY_BUILTIN:
        if (((PyCFunctionObject *)callable)->m_self == own_module && own_module != NULL) {
            function->check = check;
            function->info.ready = false;
            return NULL;
        }
        name_builtin(&name, (PyCFunctionObject *)callable);
        break;
    case BY_METHOD:
        name_member(&name, ((PyMethodDescrObject *)callable)->d_common.d_type,
                    ((PyMethodDescrObject *)callable)->d_method->ml_name);
        break;
    case BY_BOUND_WRAPPER:
        wrapper = ((struct bound_wrapper *)callable)->descriptor;
        /* fall through */
    case BY_WRAPPER:
        name_member(&name, wrapper->d_common.d_type, wrapper->d_base->name);
        break;
    case BY_TYPE:
        name_type(&name, (PyTypeObject *)callable);
        break;
    case BY_CYTHON:
        name_cython(&name, callable, Py_TYPE(callable));
        break;
    default: {
        PyTypeObject *type = Py_TYPE(callable);
        while (types_is_python(type))
            type = type->tp_base;
        name_member(&name, type, "__call__");
    }
    }
    struct code_info info = {0};
    if (!define(&info, &name))
        return NULL; /* again at its next call; open calls keep what they have */
    const PyMethodDef *def = by == BY_BUILTIN || by == BY_CYTHON ? ((PyCFunctionObject *)callable)->m_ml
                             : by == BY_METHOD ? ((PyMethodDescrObject *)callable)->d_method : NULL;
    function->name = def != NULL && reports(def) ? def->ml_name : NULL;
    function->told = false;
    function->check = check;
    function->info = info;
    return function;
}

static inline struct c_function *find(const void *key, const void *check, enum definer by, PyObject *callable)
{
    if (LIKELY(slots != NULL)) {
        struct slot *slot = slot_of(key);
        if (LIKELY(slot->key == key && slot->function->check == check && slot->function->info.ready))
            return slot->function;
    }
    return find_new(key, check, by, callable);
}

/* Is it one of Cython's functions, laid out as a built-in one? */
static bool is_cython(const PyTypeObject *type)
{
    const char *dot = strrchr(type->tp_name, '.'), *name = dot != NULL ? dot + 1 : type->tp_name;
    return type->tp_vectorcall_offset == offsetof(PyCFunctionObject, vectorcall) &&
           (strcmp(name, "cython_function_or_method") == 0 || strcmp(name, "fused_cython_function") == 0);
}

static __attribute__((noinline)) struct c_function *find_other(PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable), *base = type;
    if (type == &PyMethod_Type) {
        PyObject *function = PyMethod_GET_FUNCTION(callable);
        return Py_IS_TYPE(function, &PyMethod_Type) ? NULL : c_calls_find(function);
    }
    if (PyCFunction_Check(callable) || is_cython(type)) {
        const PyMethodDef *def = ((PyCFunctionObject *)callable)->m_ml;
        return find(def, def->ml_name, PyCFunction_Check(callable) ? BY_BUILTIN : BY_CYTHON, callable);
    }
    if (type == &PyClassMethodDescr_Type) {
        const PyMethodDef *def = ((PyMethodDescrObject *)callable)->d_method;
        return find(def, def->ml_name, BY_METHOD, callable);
    }
    if (type == &PyWrapperDescr_Type)
        return find(callable, ((PyWrapperDescrObject *)callable)->d_base, BY_WRAPPER, callable);
    if (type == bound_wrapper) {
        const PyWrapperDescrObject *wrapper = ((struct bound_wrapper *)callable)->descriptor;
        return find(wrapper, wrapper->d_base, BY_BOUND_WRAPPER, callable);
    }
    while (types_is_python(base))
        base = base->tp_base;
    if (base->tp_call == NULL || type->tp_call != base->tp_call) /* __call__ is in Python */
        return NULL;
    return find((const char *)base + 1, base->tp_name, BY_OBJECT, callable);
}

struct c_function *c_calls_find(PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable);
    if (type == &PyCFunction_Type) {
        const PyMethodDef *def = ((PyCFunctionObject *)callable)->m_ml;
        return find(def, def->ml_name, BY_BUILTIN, callable);
    }
    if (type == &PyMethodDescr_Type) {
        const PyMethodDef *def = ((PyMethodDescrObject *)callable)->d_method;
        return find(def, def->ml_name, BY_METHOD, callable);
    }
    if (type == &PyFunction_Type)
        return NULL;
    if (PyType_Check(callable)) {
        const PyTypeObject *called = (PyTypeObject *)callable;
        return types_is_python(called) || types_is_python(type)
                   ? NULL : find(called, called->tp_name, BY_TYPE, callable);
    }
    return find_other(callable);
}

/* ---- functions that tell of themselves ------------------------------------------------------ */

void c_calls_wait(struct thread *thread, const PyCodeObject *code, struct c_function *function, PyObject *argument)
{
    uint64_t now = record_now(thread);
    if (!recorder.native) {
        thread->late = (struct late_call){function, code, argument, now};
        thread->ready = false;
    } else if (!function->told) {
        c_calls_record(thread, code, function, argument, now);
    }
}

/* Is it this function's code? */
static bool is_code_of(const struct c_function *function, PyCodeObject *code)
{
    const char *name = PyUnicode_AsUTF8(code->co_name); /* is kept there */
    if (name == NULL)
        PyErr_Clear();
    return name != NULL && function->name != NULL && strcmp(name, function->name) == 0;
}

void c_calls_catch_up(struct thread *thread, PyCodeObject *code, PyObject *globals, bool begins)
{
    struct late_call late = thread->late;
    if (LIKELY(late.function == NULL) || !threads_forked())
        return;
    thread->late.function = NULL;
    thread_update_ready(thread);
    if (!thread->ready)
        return;
    if (begins && is_code_of(late.function, code)) {
        const struct code_info *info = codes_resolve(code, globals);
        if (info != NULL && info->ready) {
            late.function->told = true;
            return;
        }
    }
    uint64_t time = late.time > thread->stream.time ? late.time : thread->stream.time;
    c_calls_record(thread, late.caller, late.function, late.argument, time);
}

void c_calls_told(struct thread *thread, PyCodeObject *code)
{
    const struct open_call *call = thread->top - 1;
    while (is_native_call(call))
        call--;
    if (!call_is_of_c(call))
        return;
    struct c_function *function = (struct c_function *)((uintptr_t)call->code & ~(uintptr_t)CALL_OF_C);
    if (is_code_of(function, code))
        function->told = true;
}

/* ---- call sites ----------------------------------------------------------------------------- */

/* Of each instruction of a code object: SITE_OF_C, or how often in a row it has called the same
 * Python function, and above that some bits of the function's address. */
#define SITE_OF_C UINT16_MAX
#define SITE_CALLS 15
#define SITE_FEW 8 /* calls of the same function, after which a site is settled */

static uint16_t *site_at(PyCodeObject *code, struct code_info *info, int64_t offset)
{
    size_t count = (size_t)Py_SIZE(code), at = (size_t)offset / sizeof(_Py_CODEUNIT);
    if (info->more->sites == NULL)
        info->more->sites = PyMem_RawCalloc(count, sizeof *info->more->sites);
    return info->more->sites != NULL && at < count ? &info->more->sites[at] : NULL;
}

/* What is called, for comparison: closures of the same code are one. */
static const void *identity(PyObject *callable)
{
    if (Py_IS_TYPE(callable, &PyMethod_Type))
        callable = PyMethod_GET_FUNCTION(callable);
    if (PyFunction_Check(callable))
        return PyFunction_GET_CODE(callable);
    return PyType_Check(callable) ? (const void *)callable : Py_TYPE(callable);
}

bool c_calls_settled(PyCodeObject *code, struct code_info *info, int64_t offset, PyObject *callable)
{
    uint16_t *site = exact ? NULL : site_at(code, info, offset);
    if (site == NULL || *site == SITE_OF_C)
        return false;
    uint64_t hash = (uint64_t)(uintptr_t)identity(callable) * 0x9E3779B97F4A7C15u >> 52;
    uint16_t called = (uint16_t)(hash << 4 & ~(unsigned)SITE_CALLS), before = *site;
    bool same = (before & ~SITE_CALLS) == called && (before & SITE_CALLS) != 0;
    *site = (uint16_t)(same ? before + 1 : called + 1);
    return (*site & SITE_CALLS) >= SITE_FEW;
}

void c_calls_mark(PyCodeObject *code, struct code_info *info, int64_t offset)
{
    uint16_t *site = exact ? NULL : site_at(code, info, offset);
    if (site != NULL)
        *site = SITE_OF_C;
}
