/* `pytracer._hook`: the functions for Python code in the launcher and in the traced program.
 *
 *   create, spawn_dumper, is_ring, is_abandoned, check_pattern   the launcher
 *   join, wait_ready, start, stop, forked, recording             the traced process
 *   notrace, log                                                 the program
 */

#include "record/hook.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>

#include "record/c_calls.h"
#include "record/define.h"
#include "record/known.h"
#include "record/lookup.h"
#include "record/native.h"
#include "record/secrets.h"
#include "record/session.h"
#include "record/stats.h"

/* Paths may have any bytes: they are arguments by PyUnicode_FSConverter, which makes bytes of
 * them. */
static PyObject *os_error(int status, PyObject *path)
{
    errno = -status;
    return PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
}

PyDoc_STRVAR(create_doc,
"create(path: str, buffer_size: int, settings: bytes) -> None\n\n"
"Creates a ring. settings: NAME=value with a NUL after each. Raises OSError.");

static PyObject *create(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path, *answer;
    const char *settings;
    unsigned long long size;
    Py_ssize_t settings_size;
    if (!PyArg_ParseTuple(args, "O&Ky#:create", PyUnicode_FSConverter, &path, &size, &settings, &settings_size))
        return NULL;
    int status = ring_create(PyBytes_AS_STRING(path), size, settings, (size_t)settings_size);
    answer = status < 0 ? os_error(status, path) : Py_NewRef(Py_None);
    Py_DECREF(path);
    return answer;
}

PyDoc_STRVAR(spawn_dumper_doc,
"spawn_dumper(executable: str, ring_path: str) -> None\n\n"
"Starts the dumper, detached: not a child of this process. Raises OSError.");

static PyObject *spawn_dumper(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *executable, *path, *answer;
    if (!PyArg_ParseTuple(args, "O&O&:spawn_dumper", PyUnicode_FSConverter, &executable,
                          PyUnicode_FSConverter, &path))
        return NULL;
    int status = session_spawn_dumper(PyBytes_AS_STRING(executable), PyBytes_AS_STRING(path));
    answer = status < 0 ? os_error(status, executable) : Py_NewRef(Py_None);
    Py_DECREF(executable);
    Py_DECREF(path);
    return answer;
}

PyDoc_STRVAR(is_ring_doc, "is_ring(path: str) -> bool\n\nIs it a ring of this version, and ours?");

static PyObject *is_ring(PyObject *Py_UNUSED(module), PyObject *arg)
{
    PyObject *path;
    struct ring ring;
    int lock;
    if (!PyUnicode_FSConverter(arg, &path))
        return NULL;
    int status = ring_attach(&ring, PyBytes_AS_STRING(path), RING_READER, &lock);
    Py_DECREF(path);
    if (status < 0)
        Py_RETURN_FALSE;
    ring_detach(&ring);
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(is_abandoned_doc,
"is_abandoned(path: str, launching: bool) -> bool\n\n"
"Is it a ring that no dumper holds and all of whose processes have ended? launching: one in which\n"
"there has been none yet is not. Raises OSError.");

static PyObject *is_abandoned(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path, *answer;
    struct ring ring;
    int launching, lock;
    if (!PyArg_ParseTuple(args, "O&p:is_abandoned", PyUnicode_FSConverter, &path, &launching))
        return NULL;
    int status = ring_has_dumper(PyBytes_AS_STRING(path));
    bool alive = status == 1;
    if (status == 0 && (status = ring_attach(&ring, PyBytes_AS_STRING(path), RING_READER, &lock)) == 0) {
        alive = launching && ring_process_state(&ring, 0) == PROCESS_NONE;
        alive = alive || !ring_pids_count(&ring);
        for (uint32_t process = 0; process < RING_PROCESSES && !alive; process++)
            alive = ring_process_state(&ring, process) != PROCESS_NONE && ring_process_alive(&ring, process);
        ring_detach(&ring);
    }
    answer = status < 0 ? os_error(status, path) : PyBool_FromLong(!alive);
    Py_DECREF(path);
    return answer;
}

PyDoc_STRVAR(join_doc,
"join(ring_path: str, executable: str) -> bytes\n\n"
"Makes this process a part of the recording and returns its settings. executable: the Python for a\n"
"dumper that has to be started again. Raises OSError.");

static PyObject *join(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path, *executable, *answer = NULL;
    if (!PyArg_ParseTuple(args, "O&O&:join", PyUnicode_FSConverter, &path, PyUnicode_FSConverter, &executable))
        return NULL;
    int status = session_join(PyBytes_AS_STRING(path), PyBytes_AS_STRING(executable));
    if (status < 0) {
        os_error(status, path);
    } else {
        size_t size;
        const char *settings = ring_settings(session_ring(), &size);
        answer = PyBytes_FromStringAndSize(settings, (Py_ssize_t)size);
    }
    Py_DECREF(path);
    Py_DECREF(executable);
    return answer;
}

PyDoc_STRVAR(wait_ready_doc,
"wait_ready(seconds: float) -> tuple[int, str]\n\n"
"Waits for the dumper. Returns its state (enum dumper_state) and its message.");

static PyObject *wait_ready(PyObject *Py_UNUSED(module), PyObject *arg)
{
    char message[RING_MESSAGE_SIZE] = "";
    enum dumper_state state;
    double seconds = PyFloat_AsDouble(arg);
    if (seconds == -1 && PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    state = session_wait_ready(seconds, message, sizeof message);
    Py_END_ALLOW_THREADS
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strnlen(message, sizeof message), "replace");
    return text == NULL ? NULL : Py_BuildValue("iN", (int)state, text);
}

/* A list of str as a NULL-terminated array whose texts belong to the list; NULL, with an exception,
 * on error. An empty list: {NULL}. */
static char **text_array(PyObject *list)
{
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "a list of str is expected");
        return NULL;
    }
    char **array = PyMem_Calloc((size_t)PyList_GET_SIZE(list) + 1, sizeof *array);
    if (array == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        array[i] = (char *)PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
        if (array[i] == NULL) {
            PyMem_Free(array);
            return NULL;
        }
    }
    return array;
}

PyDoc_STRVAR(start_doc,
"start(*, modules, exclude, site_packages, stdlib, values, repr, value_length, attributes, lines, c_calls, native, cpu, redact, gate,\n"
"      stdlib_path, own_path, own_alias, made_up_file, directory, command, python) -> None\n\n"
"Begins to record this process. modules, exclude: absolute paths (modules empty: everything is in\n"
"scope). lines, c_calls: 0: none, 1: those of the user's own code, 2: all; c_calls\n"
"also 3: all, and no call site is ever switched off. native: absolute paths of shared objects and\n"
"folders whose functions are recorded, too; empty: all; None: none. cpu: of each event. redact: POSIX extended regular\n"
"expression, or None. gate: not before `site` is done. own_path,\n"
"own_alias: pytrace's own package and module. made_up_file: the name that the program's code has for\n"
"a file if it has none, or None. directory: what relative file names are relative to.\n"
"command: the arguments joined by NUL. python: its version.");

/* Called when Python is finalized. After an uncaught KeyboardInterrupt there is no exit(), at which
 * the session would leave: the signal itself ends the process. */
static void python_finalized(void)
{
    hook_finalized();
    if (compat_interrupted())
        session_leave(-SIGINT);
}

static PyMethodDef exit_method; /* os._exit's own, except the function: that is the next one */
typedef PyObject *fast_function(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
static fast_function *exit_function;

/* os._exit(status): reports the status, then does the same as always. All other ways to call it go
 * to the original. No event comes after the report: this thread keeps the GIL to its end. */
static PyObject *exit_and_say(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    int overflow = 1;
    long status = count == 1 && names == NULL && PyLong_Check(args[0])
                      ? PyLong_AsLongAndOverflow(args[0], &overflow)
                      : 0;
    if (!overflow && status >= INT_MIN && status <= INT_MAX)
        session_end((int)(status & 0xff));
    return exit_function(module, args, count, names);
}

/* The kernel tells the exit status of a child only until its parent has asked for it. A child of
 * os.fork may live for less than a dumper's pass, and most of these end by os._exit. So the
 * function object of os._exit gets another C function, which the program cannot see. */
static void watch_exit(void)
{
    static struct lookup_name module = {.text = "posix"}, name = {.text = "_exit"};
    PyObject *found = lookup_global(&module, &name);
    if (found == NULL || !PyCFunction_CheckExact(found) || exit_function != NULL)
        return;
    PyCFunctionObject *object = (PyCFunctionObject *)found;
    if (object->m_ml->ml_flags != (METH_FASTCALL | METH_KEYWORDS))
        return;
    exit_method = *object->m_ml;
    exit_function = (fast_function *)(void (*)(void))exit_method.ml_meth;
    exit_method.ml_meth = (PyCFunction)(void (*)(void))exit_and_say;
    object->m_ml = &exit_method;
}

static PyObject *start(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"modules",     "exclude",  "site_packages", "stdlib",    "values",
                            "repr",        "value_length", "attributes", "lines",    "c_calls",  "native", "cpu", "redact",    "gate",      "stdlib_path",
                            "own_path",    "own_alias", "made_up_file", "directory", "command", "python", NULL};
    PyObject *modules, *exclude, *native;
    int site_packages, stdlib, values, repr, lines, c_calls, cpu, gate;
    Py_ssize_t value_length, attributes, command_size;
    const char *redact, *stdlib_path, *own_path, *own_alias, *made_up_file, *directory, *command, *python;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "$OOppppnniiOpzpzzzzzs#s:start", names, &modules, &exclude,
                                     &site_packages, &stdlib, &values, &repr, &value_length, &attributes,
                                     &lines, &c_calls, &native, &cpu, &redact, &gate,
                                     &stdlib_path, &own_path, &own_alias, &made_up_file, &directory, &command, &command_size,
                                     &python))
        return NULL;
    if (value_length < 1 || value_length > VALUE_LENGTH_MAX)
        return PyErr_Format(PyExc_ValueError, "value_length must be from 1 to %d", VALUE_LENGTH_MAX);
    if (attributes < 0 || attributes > TYPE_ATTRIBUTES_MAX)
        return PyErr_Format(PyExc_ValueError, "attributes must be from 0 to %d", TYPE_ATTRIBUTES_MAX);
    char **module_paths = text_array(modules), **exclude_paths = module_paths ? text_array(exclude) : NULL;
    char **native_paths = exclude_paths != NULL && native != Py_None ? text_array(native) : NULL;
    int status = -1;
    if (exclude_paths != NULL && (native == Py_None || native_paths != NULL)) {
        struct codes_config config = {
            .modules = module_paths[0] != NULL ? module_paths : NULL,
            .exclude = exclude_paths[0] != NULL ? exclude_paths : NULL,
            .site_packages = site_packages,
            .stdlib = stdlib,
            .values = values,
            .lines = lines,
            .c_calls = c_calls,
            .stdlib_path = (char *)stdlib_path,
            .own_path = (char *)own_path,
            .own_alias = (char *)own_alias,
            .made_up_file = (char *)made_up_file,
            .directory = (char *)directory,
            .redact = (char *)redact,
        };
        known_prepare();
        status = c_calls_configure(c_calls == 3, module);
        if (status == 0)
            status = codes_init();
        if (status == 0)
            status = codes_configure(&config);
        if (status == 0)
            status = values_configure((size_t)value_length, (unsigned)attributes, repr);
        if (status == 0)
            status = hook_open(FRONT_END, values, cpu);
        if (status == 0 && native_paths != NULL)
            status = native_choose(native_paths);
        if (status == 0) {
            static uint32_t defined; /* the process that was defined: its number + 1 */
            uint32_t process = session_process(), parent = ring_process_parent(session_ring(), process);
            if (defined != process + 1 && define_process(parent, command, (size_t)command_size, python))
                defined = process + 1;
            status = FRONT_END->install(gate);
            static bool registered;
            if (!registered)
                registered = Py_AtExit(python_finalized) == 0;
            watch_exit();
        }
    }
    PyMem_Free(module_paths);
    PyMem_Free(exclude_paths);
    PyMem_Free(native_paths);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stop_doc, "stop() -> None\n\nEnds recording; start() may begin it again in the same process.");

static PyObject *stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    hook_close();
    if (FRONT_END->uninstall() < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(forked_doc,
"forked() -> None\n\n"
"To be called in the child after os.fork(): it is a process of the recording from now on, or not recorded.");

static PyObject *forked(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    if (recorder.on && !threads_forked() && FRONT_END->uninstall() < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(recording_doc, "recording() -> bool\n\nIs this process being recorded?");

static PyObject *recording(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
    return PyBool_FromLong(recorder.on);
}

PyDoc_STRVAR(notrace_doc,
"notrace(code: CodeType) -> None\n\nMarks a code object: neither it nor what it calls is recorded.");

static PyObject *notrace(PyObject *Py_UNUSED(module), PyObject *arg)
{
    if (!PyCode_Check(arg))
        return PyErr_Format(PyExc_TypeError, "a code object is expected, not %.100s", Py_TYPE(arg)->tp_name);
    if (codes_init() < 0 || codes_notrace((PyCodeObject *)arg) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(log_doc,
"log(text, /, **values)\n--\n\n"
"Records an event of one's own: a text, and values by name. Without a recording it does nothing.");

static PyObject *log_event(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    if (count != 1)
        return PyErr_Format(PyExc_TypeError, "log() takes 1 positional argument, the text, but %zd were given", count);
    if (recorder.on) {
        c_calls_catch_up(current_thread, NULL, NULL, false);
        hook_log(args[0], args + 1, names);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(check_pattern_doc,
"check_pattern(pattern: str) -> str | None\n\nWhat is wrong with this POSIX extended regular expression, if anything.");

static PyObject *check_pattern(PyObject *Py_UNUSED(module), PyObject *arg)
{
    char message[200];
    const char *pattern = PyUnicode_AsUTF8(arg);
    if (pattern == NULL)
        return NULL;
    const char *error = secrets_check_pattern(pattern, message, sizeof message);
    if (error == NULL)
        Py_RETURN_NONE;
    return PyUnicode_DecodeLocale(error, "surrogateescape");
}

static PyMethodDef methods[] = {
    {"create", create, METH_VARARGS, create_doc},
    {"spawn_dumper", spawn_dumper, METH_VARARGS, spawn_dumper_doc},
    {"is_ring", is_ring, METH_O, is_ring_doc},
    {"is_abandoned", is_abandoned, METH_VARARGS, is_abandoned_doc},
    {"join", join, METH_VARARGS, join_doc},
    {"wait_ready", wait_ready, METH_O, wait_ready_doc},
    {"start", (PyCFunction)(void (*)(void))start, METH_VARARGS | METH_KEYWORDS, start_doc},
    {"stop", stop, METH_NOARGS, stop_doc},
    {"forked", forked, METH_NOARGS, forked_doc},
    {"recording", recording, METH_NOARGS, recording_doc},
    {"notrace", notrace, METH_O, notrace_doc},
    {"log", (PyCFunction)(void (*)(void))log_event, METH_FASTCALL | METH_KEYWORDS, log_doc},
    {"check_pattern", check_pattern, METH_O, check_pattern_doc},
    STATS_METHOD
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pytracer._hook",
    .m_doc = "The recorder in the traced process.",
    .m_size = -1, /* one recording per process: it cannot be in two interpreters */
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__hook(void) { return PyModule_Create(&definition); }
