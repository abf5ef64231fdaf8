/* Callbacks that do nothing: the least that observing every call can cost on this Python.
 *
 *   fastcall(...)   a built-in function, METH_FASTCALL
 *   vectorcall      an object of a type with its own vectorcall slot
 *   profile(on)     PyEval_SetProfile with a C function that returns 0
 *
 * Built by build.py, loaded by noop.py; no part of pytrace.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
} Nothing;

static PyObject *nothing_vectorcall(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args),
                                    size_t Py_UNUSED(n), PyObject *Py_UNUSED(names))
{
    Py_RETURN_NONE;
}

static PyTypeObject Nothing_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "_noop.Nothing",
    .tp_basicsize = sizeof(Nothing),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Nothing, vectorcall),
    .tp_call = PyVectorcall_Call,
};

static PyObject *nothing_fastcall(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args),
                                  Py_ssize_t Py_UNUSED(n))
{
    Py_RETURN_NONE;
}

static int nothing_profile(PyObject *Py_UNUSED(self), PyFrameObject *Py_UNUSED(frame),
                           int Py_UNUSED(what), PyObject *Py_UNUSED(arg))
{
    return 0;
}

static PyObject *set_profile(PyObject *Py_UNUSED(self), PyObject *on)
{
    PyEval_SetProfile(PyObject_IsTrue(on) ? nothing_profile : NULL, NULL);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"fastcall", (PyCFunction)(void (*)(void))nothing_fastcall, METH_FASTCALL, NULL},
    {"profile", set_profile, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_noop", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit__noop(void)
{
    PyObject *self = NULL;
    Nothing *nothing = NULL;

    if (PyType_Ready(&Nothing_Type) < 0 || (self = PyModule_Create(&module)) == NULL)
        return NULL;
    nothing = PyObject_New(Nothing, &Nothing_Type);
    if (nothing == NULL || PyModule_AddObjectRef(self, "vectorcall", (PyObject *)nothing) < 0)
        Py_CLEAR(self);
    else
        nothing->vectorcall = nothing_vectorcall;
    Py_XDECREF(nothing);
    return self;
}
