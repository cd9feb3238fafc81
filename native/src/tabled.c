/* Makes, visits and frees the objects that own a table. */

#include "tabled.h"

typedef struct {
    TABLED_HEAD
} Tabled;

PyObject *new_tabled(PyTypeObject *type, PyObject *arguments, PyObject *keywords, const char *format,
                     bool (*fill)(PyObject *self, PyObject *table))
{
    static char *names[] = {"table", NULL};
    PyObject *table;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, format, names, &table)) {
        return NULL;
    }
    PyObject *self = PyType_GenericAlloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    Py_INCREF(table);
    ((Tabled *)self)->table = table;
    if (!fill(self, table)) {
        Py_DECREF(self);
        return NULL;
    }
    return self;
}

int traverse_tabled(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Tabled *)self)->table);
    return 0;
}

void dealloc_tabled(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    ((inquiry)PyType_GetSlot(type, Py_tp_clear))(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}
