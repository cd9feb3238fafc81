/* Names, key columns and texts, one after another. */

#include "loops.h"
#include "utf8.h"

/* Returns the number of key columns; -1 if positions lie outside. */
static int64_t write_keys(const Array *arrays)
{
    const Array tables = arrays[0], key_columns = arrays[1], key_ends = arrays[2], columns = arrays[3], ends = arrays[4];
    if (ends.length <= tables.length) {
        return -1;
    }
    const Array key_bytes = {key_columns.bytes, 4 * key_columns.length};
    const Array column_bytes = {columns.bytes, 4 * columns.length};
    int64_t count = 0;
    write32(ends.bytes, 0, 0);
    for (int64_t index = 0; index < tables.length; index++) {
        const int64_t table = read_int32(tables.bytes, index);
        if (table < 0 || table >= key_ends.length - 1) {
            return -1;
        }
        const int64_t first = read64(key_ends.bytes, table), last = read64(key_ends.bytes, table + 1);
        if (first >= 0 && last == first + 1 && last <= key_columns.length && count < columns.length) {
            write32(columns.bytes, count, read_int32(key_columns.bytes, first));
        } else if (first < 0 || last < first || last > key_columns.length ||
            !copy_bytes(&column_bytes, 4 * count, &key_bytes, 4 * first, 4 * (last - first))) {
            return -1;
        }
        count += last - first;
        write32(ends.bytes, index + 1, count);
    }
    return count;
}

PyObject *find_keys(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Arguments of;
    if (!read_arguments(&of, objects, count, "r4r4r8w4w4")) {
        return NULL;
    }
    int64_t keys;
    Py_BEGIN_ALLOW_THREADS;
    keys = write_keys(of.arrays);
    Py_END_ALLOW_THREADS;
    if (keys < 0) {
        return refuse(&of);
    }
    release(&of.views);
    return PyLong_FromLongLong(keys);
}

/* Returns the names' total size; -1 if numbers lie outside. */
static int64_t write_ends(const Array *arrays)
{
    const Array numbers = arrays[0], name_ends = arrays[1], ends = arrays[2];
    if (ends.length <= numbers.length) {
        return -1;
    }
    const uint64_t names = name_ends.length > 0 ? (uint64_t)name_ends.length - 1 : 0;
    int64_t size = 0, signs = 0;
    write32(ends.bytes, 0, 0);
    for (int64_t index = 0; index < numbers.length; index++) {
        const int64_t number = read_int32(numbers.bytes, index);
        if ((uint64_t)number >= names) {
            return -1;
        }
        const int64_t length = read_int32(name_ends.bytes, number + 1) - read_int32(name_ends.bytes, number);
        signs |= length;
        size += length;
        write32(ends.bytes, index + 1, size);
    }
    return signs < 0 ? -1 : size;
}

PyObject *find_names(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Arguments of;
    if (!read_arguments(&of, objects, count, "r4r4w4")) {
        return NULL;
    }
    int64_t size;
    Py_BEGIN_ALLOW_THREADS;
    size = write_ends(of.arrays);
    Py_END_ALLOW_THREADS;
    if (size < 0) {
        return refuse(&of);
    }
    release(&of.views);
    return PyLong_FromLongLong(size);
}

/* Adjacent names, as of a whole row, are copied together. */
static bool copy_by_numbers(const Array *arrays)
{
    const Array numbers = arrays[0], names = arrays[1], name_ends = arrays[2], to = arrays[3], ends = arrays[4];
    if (ends.length <= numbers.length) {
        return false;
    }
    int64_t index = 0, offset = read_int32(ends.bytes, 0);
    while (index < numbers.length) {
        const int64_t start = index, number = read_int32(numbers.bytes, index);
        index++;
        while (index < numbers.length && read_int32(numbers.bytes, index) == number + index - start) {
            index++;
        }
        const int64_t end = read_int32(ends.bytes, index);
        if (!has_index(&name_ends, number) ||
            !copy_bytes(&to, offset, &names, read_int32(name_ends.bytes, number), end - offset)) {
            return false;
        }
        offset = end;
    }
    return true;
}

PyObject *copy_names(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Arguments of;
    if (!read_arguments(&of, objects, count, "r4r1r4w1r4")) {
        return NULL;
    }
    bool is_done;
    Py_BEGIN_ALLOW_THREADS;
    is_done = copy_by_numbers(of.arrays);
    Py_END_ALLOW_THREADS;
    if (!is_done) {
        return refuse(&of);
    }
    release(&of.views);
    Py_RETURN_NONE;
}

/* Returns whether the texts are UTF-8; -1 if ends lie outside. */
static int check_texts(const Array texts, const Array ends)
{
    const int64_t size = ends.length > 0 ? read_int32(ends.bytes, ends.length - 1) : -1;
    bool lie_inside = size >= 0 && size <= texts.length;
    for (int64_t index = 0; index < ends.length; index++) {
        lie_inside &= (uint64_t)read_int32(ends.bytes, index) <= (uint64_t)size;
    }
    return lie_inside ? are_texts_utf8(texts.bytes, size, ends.bytes, ends.length) : -1;
}

PyObject *are_utf8(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Arguments of;
    if (!read_arguments(&of, objects, count, "r1r4")) {
        return NULL;
    }
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result = check_texts(of.arrays[0], of.arrays[1]);
    Py_END_ALLOW_THREADS;
    if (result < 0) {
        return refuse(&of);
    }
    release(&of.views);
    return PyBool_FromLong(result);
}
