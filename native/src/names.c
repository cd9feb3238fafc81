/* Names, key columns and texts, one after another. */

#include "loops.h"
#include "utf8.h"

/* The result is the number of key columns. */
static bool write_keys(const Array *arrays, const int64_t *scalars, void *result)
{
    (void)scalars;
    const Array tables = arrays[0], key_columns = arrays[1], key_ends = arrays[2], columns = arrays[3], ends = arrays[4];
    if (ends.length <= tables.length) {
        return false;
    }
    const Array key_bytes = {key_columns.bytes, 4 * key_columns.length};
    const Array column_bytes = {columns.bytes, 4 * columns.length};
    int64_t count = 0;
    write32(ends.bytes, 0, 0);
    for (int64_t index = 0; index < tables.length; index++) {
        const int64_t table = read_int32(tables.bytes, index);
        if (table < 0 || table >= key_ends.length - 1) {
            return false;
        }
        const int64_t first = read64(key_ends.bytes, table), last = read64(key_ends.bytes, table + 1);
        if (first >= 0 && last == first + 1 && last <= key_columns.length && count < columns.length) {
            write32(columns.bytes, count, read_int32(key_columns.bytes, first));
        } else if (first < 0 || last < first || last > key_columns.length ||
            !copy_bytes(&column_bytes, 4 * count, &key_bytes, 4 * first, 4 * (last - first))) {
            return false;
        }
        count += last - first;
        write32(ends.bytes, index + 1, count);
    }
    *(int64_t *)result = count;
    return true;
}

PyObject *find_keys(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    int64_t keys;
    if (!run_loop(objects, count, "r4r4r8w4w4", write_keys, &keys)) {
        return NULL;
    }
    return PyLong_FromLongLong(keys);
}

/* The result is the names' total size. */
static bool write_ends(const Array *arrays, const int64_t *scalars, void *result)
{
    (void)scalars;
    const Array numbers = arrays[0], name_ends = arrays[1], ends = arrays[2];
    if (ends.length <= numbers.length) {
        return false;
    }
    const uint64_t names = name_ends.length > 0 ? (uint64_t)name_ends.length - 1 : 0;
    int64_t size = 0, signs = 0;
    write32(ends.bytes, 0, 0);
    for (int64_t index = 0; index < numbers.length; index++) {
        const int64_t number = read_int32(numbers.bytes, index);
        if ((uint64_t)number >= names) {
            return false;
        }
        const int64_t length = read_int32(name_ends.bytes, number + 1) - read_int32(name_ends.bytes, number);
        signs |= length;
        size += length;
        write32(ends.bytes, index + 1, size);
    }
    *(int64_t *)result = size;
    return signs >= 0;
}

PyObject *find_names(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    int64_t size;
    if (!run_loop(objects, count, "r4r4w4", write_ends, &size)) {
        return NULL;
    }
    return PyLong_FromLongLong(size);
}

/* Adjacent names, as of a whole row, are copied together. */
static bool copy_by_numbers(const Array *arrays, const int64_t *scalars, void *result)
{
    (void)scalars, (void)result;
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
    if (!run_loop(objects, count, "r4r1r4w1r4", copy_by_numbers, NULL)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* The result is whether the texts are UTF-8. */
static bool check_texts(const Array *arrays, const int64_t *scalars, void *result)
{
    (void)scalars;
    const Array texts = arrays[0], ends = arrays[1];
    const int64_t size = ends.length > 0 ? read_int32(ends.bytes, ends.length - 1) : -1;
    bool lie_inside = size >= 0 && size <= texts.length;
    for (int64_t index = 0; index < ends.length; index++) {
        lie_inside &= (uint64_t)read_int32(ends.bytes, index) <= (uint64_t)size;
    }
    *(bool *)result = lie_inside && are_texts_utf8(texts.bytes, size, ends.bytes, ends.length);
    return lie_inside;
}

PyObject *are_utf8(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    bool result;
    if (!run_loop(objects, count, "r1r4", check_texts, &result)) {
        return NULL;
    }
    return PyBool_FromLong(result);
}
