/* Batches of messages to columns: the caller's arrays, whose sizes are checked once before a walk. */

#include "columns.h"

#include "walk.h"

bool add_walks(PyObject *module)
{
    PyObject *digests = PyTuple_New(version_count);
    for (int index = 0; digests != NULL && index < version_count; index++) {
        PyObject *digest = PyUnicode_FromString(versions[index].digest);
        if (digest == NULL || PyTuple_SetItem(digests, index, digest) < 0) {
            Py_CLEAR(digests);
        }
    }
    int result = digests == NULL ? -1 : PyModule_AddObjectRef(module, "WALKS", digests);
    Py_XDECREF(digests);
    return result == 0;
}

static const Version *version_of(int number)
{
    if (number < 0 || number >= version_count) {
        PyErr_SetString(PyExc_ValueError, "there is no walk of this number");
        return NULL;
    }
    return &versions[number];
}

static bool view_cells(Views *views, PyObject *source, int64_t count, Cells *cells)
{
    PyObject *arrays[7];
    if (!PyArg_ParseTuple(source, "OOOOOOO", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &arrays[4], &arrays[5],
                          &arrays[6]) ||
        !view_array(views, arrays[0], 1, true, &cells->kinds) ||
        !view_array(views, arrays[1], 8, true, &cells->offsets) ||
        !view_array(views, arrays[2], 8, true, &cells->starts) ||
        !view_array(views, arrays[3], 4, true, &cells->lengths) ||
        !view_array(views, arrays[4], 4, true, &cells->copy_offsets) ||
        !view_array(views, arrays[5], 4, true, &cells->copy_starts) ||
        !view_array(views, arrays[6], 1, true, &cells->values)) {
        return false;
    }
    cells->copies = cells->copy_offsets.length > 0;
    const Array *offsets = cells->copies ? &cells->copy_offsets : &cells->offsets;
    const Array *starts = cells->copies ? &cells->copy_starts : &cells->starts;
    bool fits = offsets->length > count && starts->length >= cells->kinds.length &&
                (cells->copies || cells->lengths.length >= cells->kinds.length);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the arrays of cells are too short");
    }
    return fits;
}

/* Whether a column has memory for this many rows, and its counts are within its memory. */
static bool is_within(const Walk *walk, const ColumnForm *form, const Column *column, int64_t count)
{
    if (column->validity < 0 || column->validity > walk->block.length - (count + 7) / 8 || column->count < 0 ||
        column->size < 0 || column->size > INT64_MAX / 2) {
        return false;
    }
    if (form->form == FIXED) {
        return column->values >= 0 && column->values <= walk->block.length / form->width - count;
    }
    if (form->form == SPAN) {
        return column->count <= walk->spans[form->width].length / 3;
    }
    const Cells *cells = &walk->cells[form->width];
    return column->count <= cells->kinds.length && (!cells->copies || column->size <= cells->values.length);
}

static int count_of(const Version *version, Form form)
{
    int count = 0;
    for (int column = 0; column < version->column_count; column++) {
        count += version->forms[column].form == form;
    }
    return count;
}

/* Fills a walk with the caller's arrays; false with an exception if they do not fit together. */
static bool view_walk(Views *views, const Version *version, PyObject *arguments, Walk *walk, Array *columns)
{
    PyObject *data, *offsets, *tags, *status, *known_tags, *column_array, *block, *spans, *cells;
    int number, stops;
    long long row, facts;
    if (!PyArg_ParseTuple(arguments, "iOOLLpOOOOOO!O!:walk", &number, &data, &offsets, &row, &facts, &stops, &tags,
                          &status, &known_tags, &column_array, &block, &PyTuple_Type, &spans, &PyTuple_Type, &cells)) {
        return false;
    }
    Array data_, tags_, status_, known_tags_;
    if (!view_array(views, data, 1, false, &data_) || !view_array(views, offsets, 8, false, &walk->offsets) ||
        !view_array(views, tags, 1, true, &tags_) || !view_array(views, status, 1, true, &status_) ||
        !view_array(views, known_tags, 1, true, &known_tags_) ||
        !view_array(views, column_array, sizeof(Column), true, columns) ||
        !view_array(views, block, 1, true, &walk->block)) {
        return false;
    }
    int64_t count = walk->offsets.length - 1;
    if (row < 0 || row > count || tags_.length < count || status_.length < count || known_tags_.length != 256 ||
        columns->length != version->column_count || PyTuple_Size(spans) != count_of(version, SPAN) ||
        PyTuple_Size(cells) != walk->cells_count) {
        PyErr_SetString(PyExc_ValueError, "the arrays of a walk do not fit together");
        return false;
    }
    for (int column = 0; column < version->column_count; column++) {
        const ColumnForm *form = &version->forms[column];
        if (form->form == SPAN &&
            !view_array(views, PyTuple_GetItem(spans, form->width), 8, true, &walk->spans[form->width])) {
            return false;
        }
        if (form->form == CELLS) {
            walk->cells[form->width].column = column;
            if (!view_cells(views, PyTuple_GetItem(cells, form->width), count, &walk->cells[form->width])) {
                return false;
            }
        }
    }
    memcpy(walk->columns, columns->bytes, sizeof(Column) * (size_t)version->column_count);
    for (size_t index = 0; index < version->use_count; index++) {
        const Use *use = &version->uses[index];
        if (known_tags_.bytes[use->tag] != 0 &&
            !is_within(walk, &version->forms[use->column], &walk->columns[use->column], count)) {
            PyErr_SetString(PyExc_ValueError, "a column's memory is too small");
            return false;
        }
    }
    walk->data = data_.bytes;
    walk->data_end = data_.bytes + data_.length;
    walk->row = row;
    walk->facts = facts;
    walk->stops = stops;
    walk->tags = tags_.bytes;
    walk->status = status_.bytes;
    walk->known_tags = known_tags_.bytes;
    return true;
}

PyObject *walk(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *number = PyTuple_Size(arguments) > 0 ? PyTuple_GetItem(arguments, 0) : Py_None;
    long wanted = PyLong_AsLong(number);
    const Version *version = PyErr_Occurred() || wanted > version_count ? NULL : version_of((int)wanted);
    if (version == NULL) {
        if (!PyErr_Occurred()) {
            version_of(-1);
        }
        return NULL;
    }
    Walk state = {.cells_count = count_of(version, CELLS)};
    Views views = {.count = 0};
    Array columns;
    state.columns = PyMem_Calloc((size_t)version->column_count + 1, sizeof(Column));
    state.spans = PyMem_Calloc((size_t)version->column_count + 1, sizeof(Array));
    state.cells = PyMem_Calloc((size_t)state.cells_count + 1, sizeof(Cells));
    PyObject *result = NULL;
    if (state.columns == NULL || state.spans == NULL || state.cells == NULL) {
        PyErr_NoMemory();
    } else if (view_walk(&views, version, arguments, &state, &columns)) {
        int reason;
        Py_BEGIN_ALLOW_THREADS;
        reason = version->walk(&state);
        Py_END_ALLOW_THREADS;
        memcpy(columns.bytes, state.columns, sizeof(Column) * (size_t)version->column_count);
        result = Py_BuildValue("LLi", (long long)state.row, (long long)state.facts, reason);
    }
    release(&views);
    PyMem_Free(state.columns);
    PyMem_Free(state.spans);
    PyMem_Free(state.cells);
    return result;
}

static PyObject *items_viewed(Views *views, const ItemsOf *of, PyObject *data, PyObject *lists, PyObject *field_arrays)
{
    Array data_, lists_, fields[MOST_FIELDS];
    int64_t sizes[MOST_FIELDS] = {0};
    if (!view_array(views, data, 1, false, &data_) || !view_array(views, lists, 8, false, &lists_)) {
        return NULL;
    }
    for (int index = 0; index < of->field_count; index++) {
        if (!view_array(views, PyTuple_GetItem(field_arrays, index), of->widths[index], true, &fields[index])) {
            return NULL;
        }
    }
    Walk state = {.data = data_.bytes, .data_end = data_.bytes + data_.length};
    if (!of->read(&state, &lists_, fields, sizes)) {
        PyErr_SetString(PyExc_ValueError, "the lists are not those of a walk over the data, or the arrays are too short");
        return NULL;
    }
    PyObject *result = PyTuple_New(of->field_count);
    for (int index = 0; result != NULL && index < of->field_count; index++) {
        PyObject *size = PyLong_FromLongLong(sizes[index]);
        if (size == NULL || PyTuple_SetItem(result, index, size) < 0) {
            Py_CLEAR(result);
        }
    }
    return result;
}

PyObject *items(PyObject *module, PyObject *arguments)
{
    (void)module;
    int number, column;
    PyObject *data, *lists, *fields;
    if (!PyArg_ParseTuple(arguments, "iiOOO!:items", &number, &column, &data, &lists, &PyTuple_Type, &fields)) {
        return NULL;
    }
    const Version *version = version_of(number);
    if (version == NULL) {
        return NULL;
    }
    for (const ItemsOf *of = version->items; of->column >= 0; of++) {
        if (of->column == column && of->field_count == PyTuple_Size(fields)) {
            Views views = {.count = 0};
            PyObject *result = items_viewed(&views, of, data, lists, fields);
            release(&views);
            return result;
        }
    }
    PyErr_SetString(PyExc_ValueError, "the column has no such items");
    return NULL;
}
