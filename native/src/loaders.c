/* Values of rows in the server's usual notation, read in place in a batch, column by column. A loader leaves a value that
   it does not read to the type's loader in logicalrep/values. */

#include "loaders.h"

#include "digits.h"
#include "texts.h"
#include "timestamps.h"
#include "utf8.h"

/* The rows of the longest column that are loaded at a time, with an equal share of each other column: columns mostly belong
   to the same messages, whose data are still in the cache for the next column. */
#define SHARE 256
/* Texts of up to this size are copied as a block; the next text overwrites the excess. */
#define AT_ONCE 64
#define PADDING 64

/* The loaders, as in logicalrep/values/native_loaders.py. */
enum {
    OF_NONE,
    OF_INT16,
    OF_INT32,
    OF_INT64,
    OF_OID,
    OF_BOOLEAN,
    OF_FLOAT32,
    OF_FLOAT64,
    OF_DECIMAL,
    OF_DATE,
    OF_TIMESTAMP,
    OF_TIMESTAMPTZ,
    OF_STRING,
    OF_UUID,
    OF_NUMBER,
    OF_BYTES,
    LOADERS,
};

static const uint8_t WIDTHS[LOADERS] = {0, 2, 4, 8, 8, 1, 4, 8, 16, 4, 8, 8, 4, 4, 4, 4};

/* A column to load, as in logicalrep/arrow/table/native_columns.py. */
typedef struct {
    int64_t code;
    int64_t width;
    int64_t precision;
    int64_t scale;
    int64_t ordinal;
    int64_t side;
    int64_t first;
    int64_t having;
    int64_t changes;
    int64_t states;
    int64_t validity;
    int64_t values;
    int64_t texts;
    int64_t total;
    int64_t next;
    int64_t valued;
} NativeColumn;

/* The values of the old or new rows of a batch. */
typedef struct {
    Array kinds;
    Array starts;
    Array lengths;
    int64_t count;
} Side;

typedef struct {
    Array data;
    NativeColumn *columns; /* copies of the caller's */
    int64_t count;
    Side sides[2];
    Array rows;
    Array cells;
    Array block;
    Array texts;
    Array left_columns;
    Array left_rows;
    int64_t left;
} Loading;

static bool view_sides(Views *views, PyObject *const *arrays, Side *sides)
{
    for (Side *side = sides; side < sides + 2; side++, arrays += 3) {
        if (!view_array(views, arrays[0], 1, false, &side->kinds) ||
            !view_array(views, arrays[1], 8, false, &side->starts) ||
            !view_array(views, arrays[2], 4, false, &side->lengths)) {
            return false;
        }
        side->count = side->kinds.length;
        if (side->starts.length < side->count || side->lengths.length < side->count) {
            PyErr_SetString(PyExc_ValueError, "the arrays of values are too short");
            return false;
        }
    }
    return true;
}

/* Whether a column's source is within the arrays. */
static bool has_source(const Loading *loading, const NativeColumn *column)
{
    return column->code >= 0 && column->code < LOADERS && column->width == WIDTHS[column->code] && column->side >= 0 &&
           column->side < 2 && column->ordinal >= 0 && column->ordinal <= loading->sides[column->side].count &&
           column->first >= 0 && column->having >= 0 && column->having <= INT32_MAX &&
           column->first <= loading->cells.length - column->having;
}

/* Whether `count` items of a width are within bytes, from the item `start` on. */
static inline bool fits(int64_t start, int64_t count, int64_t width, int64_t size)
{
    return start >= 0 && start <= size / width - count;
}

/* Whether a column's target is within the arrays. */
static bool has_target(const Loading *loading, const NativeColumn *column)
{
    const int64_t size = loading->block.length, rows = column->changes, lanes = (rows + LANES - 1) / LANES;
    const bool has_offsets = column->code >= OF_STRING;
    return rows >= 0 && rows <= INT32_MAX && column->precision >= 0 && column->scale >= INT16_MIN &&
           column->scale <= INT16_MAX && fits(column->states, lanes * LANES, 1, size) &&
           fits(column->validity, lanes, 4, size) &&
           (column->width == 0 || fits(column->values, rows + has_offsets, column->width, size)) &&
           (!has_offsets || (column->total >= 0 && column->total <= INT32_MAX && column->texts >= PADDING &&
                             fits(column->texts, column->total, 1, loading->texts.length - PADDING)));
}

/* Some of a column's rows. */
typedef struct {
    int64_t index; /* of the column */
    int64_t begin;
    int64_t end;
} Share;

static inline int64_t leave(const Loading *loading, int64_t left, int64_t index, int64_t row)
{
    write64(loading->left_columns.bytes, left, index);
    write64(loading->left_rows.bytes, left, row);
    return left + 1;
}

/* What the loops over a share read and write, in variables of their own, as a write of bytes may change any memory. */
typedef struct {
    Source source;
    const uint8_t *rows;
    const uint8_t *cells;
    const uint8_t *kinds;
    const uint8_t *starts;
    const uint8_t *lengths;
    uint8_t *states;
    uint8_t *output;
    int64_t ordinal;
} Places;

ALWAYS_INLINED Places places_of(const Loading *loading, const NativeColumn *column)
{
    const Side *side = &loading->sides[column->side];
    return (Places){
        .source = {loading->data.bytes, loading->data.length, column->precision, column->scale},
        .rows = loading->rows.bytes,
        .cells = loading->cells.bytes,
        .kinds = side->kinds.bytes,
        .starts = side->starts.bytes,
        .lengths = side->lengths.bytes,
        .states = loading->block.bytes + column->states,
        .output = loading->block.bytes + column->width * column->values,
        .ordinal = column->ordinal,
    };
}

/* Reads the kind of an item's value, and writes it as the row's state; returns the value's cell. */
ALWAYS_INLINED int64_t read_kind(const Places *places, int64_t item, Value *value)
{
    const int64_t cell = read64(places->cells, item) + places->ordinal;
    const uint8_t kind = places->kinds[cell];
    value->row = read64(places->rows, item);
    value->kind = kind;
    places->states[value->row] = kind;
    return cell;
}

/* Reads where a value is; false outside of the data. */
ALWAYS_INLINED bool read_place(const Places *places, int64_t cell, Value *value)
{
    uint32_t length;
    memcpy(&length, places->lengths + 4 * cell, 4);
    value->start = read64(places->starts, cell);
    value->length = length;
    return value->start >= 0 && value->start <= places->source.size - value->length;
}

typedef bool Parse(const Source *source, const Value *value, int64_t *number);

/* Loads numbers of a width. Without `parse` all values are left. */
ALWAYS_INLINED bool load_numbers(Loading *loading, const NativeColumn *column, const Share *share, Parse *parse,
                                 const int width)
{
    const Places places = places_of(loading, column);
    const int64_t end = share->end;
    int64_t left = loading->left;
    for (int64_t item = share->begin; item < end; item++) {
        Value value;
        const int64_t cell = read_kind(&places, item, &value);
        if (value.kind != TEXT && value.kind != BINARY) {
            continue;
        }
        if (!read_place(&places, cell, &value)) {
            return false;
        }
        int64_t number;
        if (parse == NULL || !parse(&places.source, &value, &number)) {
            left = leave(loading, left, share->index, value.row);
        } else if (width == 16) {
            write64(places.output, 2 * value.row, number);
            write64(places.output, 2 * value.row + 1, number < 0 ? -1 : 0);
        } else {
            write_integer(places.output, width, value.row, number);
        }
    }
    loading->left = left;
    return true;
}

/* Whether a text has the form of the type, and is copied as it is; for OF_BYTES whether it is not hexadecimal. */
ALWAYS_INLINED bool is_copied(const Source *source, const Value *value, const int code)
{
    switch (code) {
    case OF_STRING:
        return value->kind == TEXT;
    case OF_UUID:
        return is_uuid(source, value);
    case OF_NUMBER:
        return is_number(source, value);
    default:
        return value->kind == BINARY;
    }
}

/* Copies texts, or the bytes that they stand for, and writes each length behind the offset's item; false if the texts are
   more than was measured. */
ALWAYS_INLINED bool load_texts(Loading *loading, NativeColumn *column, const Share *share, const int code)
{
    const Places places = places_of(loading, column);
    const int64_t end = share->end;
    uint8_t *const texts = loading->texts.bytes;
    const int64_t limit = column->texts + column->total, last_block = places.source.size - AT_ONCE;
    int64_t left = loading->left, target = column->next;
    for (int64_t item = share->begin; item < end; item++) {
        Value value;
        const int64_t cell = read_kind(&places, item, &value);
        if (value.kind != TEXT && value.kind != BINARY) {
            continue;
        }
        if (!read_place(&places, cell, &value)) {
            return false;
        }
        const uint8_t *const at = places.source.data + value.start;
        const bool is_as_sent = is_copied(&places.source, &value, code);
        const int64_t size = code == OF_BYTES && !is_as_sent ? value.length / 2 - 1 : value.length;
        const int64_t room = limit - target;
        if (is_as_sent && size <= AT_ONCE && value.start <= last_block && room >= AT_ONCE) {
            /* A whole block whatever the length spares an unpredictable branch. */
            memcpy(texts + target, at, AT_ONCE);
        } else if (size > room) {
            return false;
        } else if (is_as_sent) {
            memcpy(texts + target, at, (size_t)size);
        } else if (code != OF_BYTES || size < 0 || at[0] != '\\' || at[1] != 'x' ||
                   !from_hexadecimal(at + 2, value.length - 2, texts + target)) {
            left = leave(loading, left, share->index, value.row);
            continue;
        }
        write32(places.output, value.row + 1, size);
        target += size;
    }
    loading->left = left;
    column->next = target;
    return true;
}

/* Each loop in a function of its own has the registers to itself. */
#define LOOP(name, call) \
    NEVER_INLINED bool name(Loading *loading, NativeColumn *column, const Share *share) \
    { \
        return call; \
    }
#define NUMBERS(name, parse, width) LOOP(name, load_numbers(loading, column, share, parse, width))
#define TEXTS(name, code) LOOP(name, load_texts(loading, column, share, code))

NUMBERS(load_none, NULL, 1)
NUMBERS(load_int16, parse_int16, 2)
NUMBERS(load_int32, parse_int32, 4)
NUMBERS(load_int64, parse_int64, 8)
NUMBERS(load_oid, parse_oid, 8)
NUMBERS(load_boolean, parse_boolean, 1)
NUMBERS(load_float32, parse_float32, 4)
NUMBERS(load_float64, parse_float64, 8)
NUMBERS(load_decimal, parse_decimal, 16)
NUMBERS(load_date, parse_date, 4)
NUMBERS(load_timestamp, parse_timestamp, 8)
NUMBERS(load_timestamptz, parse_timestamptz, 8)
TEXTS(load_string, OF_STRING)
TEXTS(load_uuid, OF_UUID)
TEXTS(load_number, OF_NUMBER)
TEXTS(load_bytes, OF_BYTES)

/* By the column's code. */
static bool (*const LOOPS[LOADERS])(Loading *loading, NativeColumn *column, const Share *share) = {
    load_none,    load_int16,   load_int32,     load_int64,       load_oid,    load_boolean, load_float32, load_float64,
    load_decimal, load_date,    load_timestamp, load_timestamptz, load_string, load_uuid,    load_number,  load_bytes,
};

/* Clears the output of some rows and of the rows between them: here the memory is about to enter the cache. */
static bool make_ready(const Loading *loading, const NativeColumn *column, int64_t begin, int64_t end)
{
    const bool is_last = end == column->having, has_offsets = column->code >= OF_STRING;
    const int64_t first = begin == 0 ? 0 : read64(loading->rows.bytes, column->first + begin);
    const int64_t last = is_last ? column->changes : read64(loading->rows.bytes, column->first + end);
    if (first < 0 || last < first || last > column->changes) {
        return false;
    }
    uint8_t *const values = loading->block.bytes + column->width * column->values;
    if (has_offsets) {
        /* The first text's offset; each other offset is written behind its text. */
        write32(values, 0, 0);
    }
    memset(values + column->width * (first + has_offsets), 0, (size_t)(column->width * (last - first)));
    /* The states are read in whole lanes. */
    const int64_t cleared = is_last ? (last + LANES - 1) / LANES * LANES : last;
    memset(loading->block.bytes + column->states + first, 0, (size_t)(cleared - first));
    return true;
}

/* Returns the highest bit of each byte that is zero. */
static inline uint64_t zero_bytes(uint64_t bytes)
{
    return ~(((bytes & ~HIGH) + ~HIGH) | bytes) & HIGH;
}

/* Writes the validity from the states, counts the values, and makes offsets of lengths. */
static void finish_column(const Loading *loading, NativeColumn *column)
{
    const int64_t rows = column->changes, eights = (rows + LANES - 1) / LANES * (LANES / 8);
    const uint8_t *const states = loading->block.bytes + column->states;
    uint8_t *const validity = loading->block.bytes + 4 * column->validity;
    int64_t valued = 0;
    for (int64_t eight = 0; eight < eights; eight++) {
        const uint64_t eight_states = load64(states + 8 * eight);
        const uint64_t ones = (zero_bytes(eight_states ^ TEXT * ONES) | zero_bytes(eight_states ^ BINARY * ONES)) >> 7;
        /* The highest byte of this product has the bit of the first state as its lowest bit, and so on. */
        validity[eight] = (uint8_t)(ones * 0x8040201008040201 >> 56);
        valued += (int64_t)(ones * ONES >> 56);
    }
    column->valued = valued;
    if (column->code >= OF_STRING) {
        uint8_t *const offsets = loading->block.bytes + 4 * column->values;
        uint32_t total = 0;
        for (int64_t item = 1; item <= rows; item++) {
            uint32_t size;
            memcpy(&size, offsets + 4 * item, 4);
            total += size;
            write32(offsets, item, total);
        }
        column->total = total;
    }
}

/* Leaves a column's texts that are not UTF-8. */
static void leave_bad(Loading *loading, const NativeColumn *column, int64_t index)
{
    const uint8_t *const texts = loading->texts.bytes + column->texts;
    const uint8_t *const offsets = loading->block.bytes + 4 * column->values;
    if (are_texts_utf8(texts, column->total, offsets, column->changes)) {
        return;
    }
    uint32_t begin = 0, end;
    for (int64_t row = 0; row < column->changes; row++, begin = end) {
        memcpy(&end, offsets + 4 * (row + 1), 4);
        if (!is_utf8(texts + begin, texts + end)) {
            loading->left = leave(loading, loading->left, index, row);
        }
    }
}

/* Loads the columns, whose arrays were checked; false if rows are not in order, or values lie outside of the data. */
static bool load_columns(Loading *loading)
{
    int64_t most = 0;
    for (int64_t index = 0; index < loading->count; index++) {
        const int64_t having = loading->columns[index].having;
        most = having > most ? having : most;
    }
    const int64_t steps = (most + SHARE - 1) / SHARE;
    for (int64_t step = 0; step < steps; step++) {
        /* A column at a time, so that each loop does one thing. */
        for (int64_t index = 0; index < loading->count; index++) {
            NativeColumn *column = &loading->columns[index];
            const int64_t begin = column->having * step / steps, end = column->having * (step + 1) / steps;
            if (begin == end) {
                continue;
            }
            const Share share = {index, column->first + begin, column->first + end};
            if (!make_ready(loading, column, begin, end) || !LOOPS[column->code](loading, column, &share)) {
                return false;
            }
        }
    }
    for (int64_t index = 0; index < loading->count; index++) {
        NativeColumn *column = &loading->columns[index];
        if (column->having > 0) {
            finish_column(loading, column);
            if (column->code == OF_STRING && column->total > 0) {
                leave_bad(loading, column, index);
            }
        }
    }
    return true;
}

static bool outside(void)
{
    PyErr_SetString(PyExc_ValueError, "columns, rows or values lie outside of the arrays");
    return false;
}

/* Copies the caller's columns, and checks their sources. The caller frees the copies. */
static bool copy_columns(const Array *columns, Loading *loading)
{
    loading->count = columns->length;
    loading->columns = PyMem_Malloc(sizeof(NativeColumn) * (size_t)(columns->length + 1));
    if (loading->columns == NULL) {
        PyErr_NoMemory();
        return false;
    }
    memcpy(loading->columns, columns->bytes, sizeof(NativeColumn) * (size_t)columns->length);
    for (int64_t index = 0; index < loading->count; index++) {
        if (!has_source(loading, &loading->columns[index])) {
            return outside();
        }
    }
    return true;
}

/* Whether the values of all columns' rows are within the arrays, and the rows too if they are given. */
static bool are_within(const Loading *loading)
{
    int64_t first = 0, having = 0;
    uint64_t last_cell = 0, last_row = 0;
    for (int64_t index = 0; index < loading->count; index++) {
        const NativeColumn *column = &loading->columns[index];
        /* Most columns belong to the same rows. */
        if (column->first != first || column->having != having) {
            first = column->first;
            having = column->having;
            last_cell = last_row = 0;
            for (int64_t item = first; item < first + having; item++) {
                const uint64_t cell = (uint64_t)read64(loading->cells.bytes, item);
                last_cell = cell > last_cell ? cell : last_cell;
                const uint64_t row = loading->rows.bytes == NULL ? 0 : (uint64_t)read64(loading->rows.bytes, item);
                last_row = row > last_row ? row : last_row;
            }
        }
        const uint64_t count = (uint64_t)(loading->sides[column->side].count - column->ordinal);
        if (having > 0 && (last_cell >= count || (loading->rows.bytes != NULL && last_row >= (uint64_t)column->changes))) {
            return false;
        }
    }
    return true;
}

/* Writes an upper limit of the bytes of each column's texts. */
static void measure_columns(Loading *loading)
{
    for (int64_t index = 0; index < loading->count; index++) {
        NativeColumn *column = &loading->columns[index];
        if (column->code < OF_STRING) {
            continue;
        }
        const Side *side = &loading->sides[column->side];
        int64_t total = 0;
        for (int64_t item = column->first; item < column->first + column->having; item++) {
            const int64_t cell = read64(loading->cells.bytes, item) + column->ordinal;
            const uint8_t kind = side->kinds.bytes[cell];
            uint32_t length;
            memcpy(&length, side->lengths.bytes + 4 * cell, 4);
            length >>= column->code == OF_BYTES && kind == TEXT;
            total += length & -(int64_t)((kind == TEXT) | (kind == BINARY));
        }
        column->total = total;
    }
}

/* Views the arrays of load_rows, and checks the columns' targets. */
static bool view_target(Views *views, PyObject *const *arrays, Loading *loading)
{
    if (!view_array(views, arrays[0], 1, false, &loading->data) ||
        !view_array(views, arrays[1], 8, false, &loading->rows) ||
        !view_array(views, arrays[2], 1, true, &loading->block) ||
        !view_array(views, arrays[3], 1, true, &loading->texts) ||
        !view_array(views, arrays[4], 8, true, &loading->left_columns) ||
        !view_array(views, arrays[5], 8, true, &loading->left_rows)) {
        return false;
    }
    int64_t room = loading->left_columns.length;
    room = loading->left_rows.length < room ? loading->left_rows.length : room;
    for (int64_t index = 0; index < loading->count; index++) {
        NativeColumn *column = &loading->columns[index];
        column->next = column->texts;
        room -= column->having;
        if (room < 0 || (column->having > 0 && !has_target(loading, column))) {
            return outside();
        }
    }
    return loading->rows.length >= loading->cells.length || outside();
}

/* Runs measure_rows, or with `target` load_rows; returns the number of values left, -1 with an exception. */
static int64_t run(PyObject *columns, PyObject *const *sides, PyObject *cells, PyObject *const *target)
{
    Views views = {.count = 0};
    Loading loading = {.columns = NULL, .rows = {.bytes = NULL}};
    Array caller_columns;
    bool is_done = view_array(&views, columns, sizeof(NativeColumn), true, &caller_columns) &&
                   view_sides(&views, sides, loading.sides) && view_array(&views, cells, 8, false, &loading.cells) &&
                   copy_columns(&caller_columns, &loading) &&
                   (target == NULL || view_target(&views, target, &loading));
    if (is_done) {
        Py_BEGIN_ALLOW_THREADS;
        is_done = are_within(&loading);
        if (target == NULL && is_done) {
            measure_columns(&loading);
        } else if (is_done) {
            is_done = load_columns(&loading);
        }
        Py_END_ALLOW_THREADS;
        if (is_done) {
            memcpy(caller_columns.bytes, loading.columns, sizeof(NativeColumn) * (size_t)loading.count);
        } else {
            outside();
        }
    }
    PyMem_Free(loading.columns);
    release(&views);
    return is_done ? loading.left : -1;
}

void prepare_loaders(void)
{
    fill_tables();
}

PyObject *measure_rows(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *columns, *sides[6], *cells;
    if (!PyArg_ParseTuple(arguments, "O(OOO)(OOO)O:measure_rows", &columns, &sides[0], &sides[1], &sides[2], &sides[3],
                          &sides[4], &sides[5], &cells) ||
        run(columns, sides, cells, NULL) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *load_rows(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *columns, *sides[6], *cells, *target[6];
    if (!PyArg_ParseTuple(arguments, "OO(OOO)(OOO)OOOOOO:load_rows", &target[0], &columns, &sides[0], &sides[1],
                          &sides[2], &sides[3], &sides[4], &sides[5], &target[1], &cells, &target[2], &target[3],
                          &target[4], &target[5])) {
        return NULL;
    }
    int64_t left = run(columns, sides, cells, target);
    return left < 0 ? NULL : PyLong_FromLongLong(left);
}
