/* Types of C with the names and the sizes of CPython's, whose objects lie in memory otherwise: all
 * behind the head is 0x7f. Called by test_layouts.py. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

static PyObject *make(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(keywords))
{
    PyObject *self = type->tp_alloc(type, 0);
    size_t head = type->tp_itemsize ? sizeof(PyVarObject) : sizeof(PyObject);
    if (self != NULL)
        memset((char *)self + head, 0x7f, (size_t)type->tp_basicsize - head);
    return self;
}

/* not the function that classes in Python have */
static void let_go(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {{Py_tp_new, make}, {Py_tp_dealloc, let_go}, {0, NULL}};

/* otherwise(name, size): a type */
static PyObject *otherwise(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *name;
    int size;
    if (!PyArg_ParseTuple(args, "si", &name, &size))
        return NULL;
    PyType_Spec spec = {.name = strdup(name), .basicsize = size, .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
    return PyType_FromSpec(&spec);
}

static PyMethodDef methods[] = {{"otherwise", otherwise, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "otherwise", .m_methods = methods};

PyMODINIT_FUNC PyInit_otherwise(void) { return PyModule_Create(&definition); }
