/* The arguments of loops, and their entries in the module. */

#include "loops.h"

typedef struct {
    const char *form;
    int arrays;
    int numbers;
} Progress;

static bool read_argument(Arguments *arguments, PyObject *object, Progress *progress)
{
    const char kind = progress->form[0];
    const int width = progress->form[1] - '0';
    progress->form += 2;
    if (kind != 'n') {
        return view_array(&arguments->views, object, width, kind == 'w', &arguments->arrays[progress->arrays++]);
    }
    long long number = PyLong_AsLongLong(object);
    arguments->numbers[progress->numbers++] = number;
    return number != -1 || !PyErr_Occurred();
}

static bool read_tuple(Arguments *arguments, PyObject *object, Progress *progress)
{
    if (!PyTuple_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "an argument is no tuple");
        return false;
    }
    progress->form++;
    const Py_ssize_t size = PyTuple_Size(object);
    Py_ssize_t index = 0;
    for (; *progress->form != ')' && index < size; index++) {
        if (!read_argument(arguments, PyTuple_GetItem(object, index), progress)) {
            return false;
        }
    }
    if (*progress->form++ != ')' || index != size) {
        PyErr_SetString(PyExc_TypeError, "a tuple has another number of items");
        return false;
    }
    return true;
}

bool read_arguments(Arguments *arguments, PyObject *const *objects, Py_ssize_t count, const char *forms)
{
    Progress progress = {forms, 0, 0};
    arguments->views.count = 0;
    Py_ssize_t index = 0;
    bool is_read = true;
    for (; is_read && *progress.form != '\0' && index < count; index++) {
        is_read = *progress.form == '(' ? read_tuple(arguments, objects[index], &progress)
                                        : read_argument(arguments, objects[index], &progress);
    }
    if (is_read && (*progress.form != '\0' || index != count)) {
        PyErr_SetString(PyExc_TypeError, "the function takes another number of arguments");
        is_read = false;
    }
    if (!is_read) {
        release(&arguments->views);
    }
    return is_read;
}

PyObject *refuse(Arguments *arguments)
{
    release(&arguments->views);
    PyErr_SetString(PyExc_ValueError, "positions lie outside of the arrays, or the arrays are too short");
    return NULL;
}

bool run_loop(PyObject *const *objects, Py_ssize_t count, const char *forms, Body *body, void *result)
{
    Arguments of;
    if (!read_arguments(&of, objects, count, forms)) {
        return false;
    }
    bool fits;
    Py_BEGIN_ALLOW_THREADS;
    fits = body(of.arrays, of.numbers, result);
    Py_END_ALLOW_THREADS;
    if (!fits) {
        refuse(&of);
        return false;
    }
    release(&of.views);
    return true;
}

#define LOOP(name, signature, doc) \
    {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, #name "(" signature ")\n--\n\n" doc}

static PyMethodDef loops[] = {
    LOOP(group_rows, "rows, oids, grouped", "Group messages by table."),
    LOOP(find_rows, "rows, offsets, validity, kinds, in_key, key_kinds, present, whole", "Find messages with a row."),
    LOOP(follow, "tags, is_open, changes, truncated, transaction_of, ordinals", "Number transactions and changes."),
    LOOP(number_tables, "tags, oids, first, last, buckets, tables", "Number the tables of changes."),
    LOOP(fill_rows, "rows, messages, tables, transactions, columns", "Fill the columns of the change feed."),
    LOOP(fill_maps, "rows, tables, columns, side, other, are_new, old_kinds, data, to", "Fill maps of rows."),
    LOOP(find_keys, "tables, key_columns, key_ends, columns, ends", "Concatenate the key columns of tables."),
    LOOP(find_names, "numbers, name_ends, ends", "Write the ends of names; return their size."),
    LOOP(copy_names, "numbers, names, name_ends, to, ends", "Concatenate names."),
    LOOP(are_utf8, "texts, ends", "Return whether all texts are UTF-8."),
    LOOP(copy_frames, "source, header, lsns, offsets, tags, target", "Take messages out of frames."),
    LOOP(cut_out, "source, begins, start, length, offsets, target", "Concatenate messages without some bytes."),
    LOOP(insert_messages, "source, beginning, columns, meanings, offsets, target", "Make Inserts of COPY rows."),
    {NULL, NULL, 0, NULL},
};

bool add_loops(PyObject *module)
{
    return PyModule_AddFunctions(module, loops) == 0;
}
