/* What the generated walks consist of. All memory is the caller's: columns.c compares its sizes once, before a walk, with
   the rows; a walk then compares what a row or a value needs with what is left. */

#ifndef LOGICALREP_WALK_H
#define LOGICALREP_WALK_H

#include "buffers.h"
#include "utf8.h"

/* A walk's results, as in logicalrep_runtime/columnar/located.py. */
enum { TAKEN = 0, REFUSED = -1, FULL = -2, UNKNOWN = -3, OUTSIDE = -4 };

#define UTF8 (1 << 8)
#define REFUSED_BIT 0x80
#define SEEN 2
/* Values of up to this size are copied as a block; the next value overwrites the excess. */
#define BLOCK 32

typedef struct {
    int64_t values;
    int64_t validity;
    int64_t count;
    int64_t size;
} Column;

typedef struct {
    bool copies;
    int column;
    Array kinds;
    Array offsets;
    Array starts;
    Array lengths;
    Array copy_offsets;
    Array copy_starts;
    Array values;
} Cells;

typedef struct {
    const uint8_t *data;
    const uint8_t *data_end;
    Array offsets;
    int64_t row;
    int64_t facts;
    bool stops;
    uint8_t *tags;
    uint8_t *status;
    uint8_t *known_tags;
    Array block;
    Column *columns;
    Array *spans;
    Cells *cells;
    int cells_count;
} Walk;

#define uint8_at(at) ((int64_t) * (at))
#define int8_at(at) ((int64_t)(int8_t) * (at))
#define uint16_at(at) ((int64_t)load16(at))
#define int16_at(at) ((int64_t)(int16_t)load16(at))
#define uint32_at(at) ((int64_t)load32(at))
#define int32_at(at) ((int64_t)(int32_t)load32(at))
#define uint64_at(at) ((int64_t)load64(at))
#define int64_at(at) ((int64_t)load64(at))

/* Returns the size of the text up to the next zero byte; -1 if there is none, or the text is not valid. */
static inline int64_t text_size(const Walk *walk, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *zero = memchr(at, 0, (size_t)(end - at));
    return zero == NULL || (walk->facts & UTF8 && !is_utf8(at, zero)) ? -1 : zero - at;
}

/* A time in another epoch: late times wrap around. */
static inline int64_t sum(int64_t number, int64_t epoch)
{
    return (int64_t)((uint64_t)number + (uint64_t)epoch);
}

static inline void mark(const Walk *walk, int column, int64_t row)
{
    walk->block.bytes[walk->columns[column].validity + (row >> 3)] |= (uint8_t)(1 << (row & 7));
}

static inline void put8(const Walk *walk, int column, int64_t row, int64_t value)
{
    write8(walk->block.bytes, walk->columns[column].values + row, value);
    mark(walk, column, row);
}

static inline void put16(const Walk *walk, int column, int64_t row, int64_t value)
{
    write16(walk->block.bytes, walk->columns[column].values + row, value);
    mark(walk, column, row);
}

static inline void put32(const Walk *walk, int column, int64_t row, int64_t value)
{
    write32(walk->block.bytes, walk->columns[column].values + row, value);
    mark(walk, column, row);
}

static inline void put64(const Walk *walk, int column, int64_t row, int64_t value)
{
    write64(walk->block.bytes, walk->columns[column].values + row, value);
    mark(walk, column, row);
}

static inline bool is_full(const Walk *walk, int number, int column)
{
    return 3 * (walk->columns[column].count + 1) > walk->spans[number].length;
}

static inline void put_span(const Walk *walk, int number, int column, int64_t row, int64_t start, int64_t size)
{
    uint8_t *triples = walk->spans[number].bytes;
    int64_t count = walk->columns[column].count++;
    write64(triples, 3 * count, row);
    write64(triples, 3 * count + 1, start);
    write64(triples, 3 * count + 2, size);
    walk->columns[column].size += size;
    mark(walk, column, row);
}

static inline void put_cells(const Walk *walk, int column, int64_t row, int64_t count, int64_t size)
{
    walk->columns[column].count = count;
    walk->columns[column].size = size;
    mark(walk, column, row);
}

typedef enum { ILLEGAL, BARE, VALUED } Case;
typedef Case Classify(uint8_t kind);

/* Reads cells by offsets. What does not change is in variables, as a write of bytes may change any memory. */
ALWAYS_INLINED int fill_cells(const Walk *walk, const Cells *cells, Classify *classify, const bool copies,
                              const int width, const uint8_t **place, const uint8_t *stop, int64_t cell,
                              int64_t last, int64_t *bytes)
{
    const uint8_t *const data = walk->data;
    uint8_t *const kinds = cells->kinds.bytes, *const lengths = cells->lengths.bytes;
    uint8_t *const starts = copies ? cells->copy_starts.bytes : cells->starts.bytes;
    uint8_t *const values = cells->values.bytes;
    /* Where a block can be read and written. */
    const int64_t last_block = walk->data_end - data - BLOCK, last_room = cells->values.length - BLOCK;
    const int64_t end = stop - data;
    int64_t offset = *place - data, to = *bytes;
    for (; cell < last; cell++) {
        if (offset >= end) {
            return REFUSED;
        }
        const uint8_t kind = data[offset++];
        int64_t length = 0;
        const Case kind_case = classify(kind);
        if (kind_case == VALUED) {
            if (end - offset < width) {
                return REFUSED;
            }
            /* Unsigned, a negative length exceeds the message. */
            length = load_integer(data + offset, width, false);
            offset += width;
            if (length < 0 || length > end - offset) {
                return REFUSED;
            }
        } else if (kind_case == ILLEGAL) {
            return REFUSED;
        }
        kinds[cell] = kind;
        if (copies) {
            write32(starts, cell, to);
            if (length <= BLOCK && offset <= last_block && to <= last_room) {
                memcpy(values + to, data + offset, BLOCK);
            } else {
                memcpy(values + to, data + offset, (size_t)length);
            }
        } else {
            write64(starts, cell, offset);
            write32(lengths, cell, length);
        }
        offset += length;
        to += length;
    }
    *place = data + offset;
    *bytes = to;
    return TAKEN;
}

/* Reads the cells of a row behind those before; writes the number and the bytes of all. Counts are of both. */
ALWAYS_INLINED int read_cells(const Walk *walk, Classify *classify, const int width, const uint8_t **place,
                              const uint8_t *end, int64_t count, int number, int column, int64_t *last, int64_t *bytes)
{
    const Cells *cells = &walk->cells[number];
    const int64_t first = walk->columns[column].count;
    *last = first + count;
    *bytes = walk->columns[column].size;
    if (count < 0 || count > end - *place) {
        return REFUSED;
    }
    if (count > cells->kinds.length - first || (cells->copies && end - *place > cells->values.length - *bytes)) {
        return FULL;
    }
    return cells->copies ? fill_cells(walk, cells, classify, true, width, place, end, first, *last, bytes)
                         : fill_cells(walk, cells, classify, false, width, place, end, first, *last, bytes);
}

static inline void begin_rows(const Walk *walk, int64_t row)
{
    for (int index = 0; index < walk->cells_count; index++) {
        const Cells *cells = &walk->cells[index];
        if (cells->copies) {
            write32(cells->copy_offsets.bytes, row, walk->columns[cells->column].count);
        } else {
            write64(cells->offsets.bytes, row, walk->columns[cells->column].count);
        }
    }
}

typedef int ReadMessage(Walk *walk, uint8_t tag, const uint8_t *at, const uint8_t *end, int64_t row);

/* Walks messages from the walk's row on, to the first unread row; skips rows whose status is not 0. Returns TAKEN at the
   end; REFUSED if the walk stops at a row that is invalid; FULL, UNKNOWN or OUTSIDE. */
ALWAYS_INLINED int walk_rows(Walk *walk, ReadMessage *read_message)
{
    const int64_t count = walk->offsets.length - 1, size = walk->data_end - walk->data;
    int64_t end = read64(walk->offsets.bytes, walk->row);
    if (end < 0) {
        return OUTSIDE;
    }
    for (; walk->row < count; walk->row++) {
        const int64_t row = walk->row, start = end;
        begin_rows(walk, row);
        end = read64(walk->offsets.bytes, row + 1);
        if (end < start || end > size) {
            return OUTSIDE;
        }
        int result = REFUSED;
        uint8_t tag = 0;
        if (start < end) {
            tag = walk->data[start];
            if (walk->known_tags[tag] == 0) {
                return UNKNOWN;
            }
            walk->known_tags[tag] = SEEN;
            if (walk->status[row] == 0) {
                result = read_message(walk, tag, walk->data + start + 1, walk->data + end, row);
            }
        }
        if (result == TAKEN) {
            walk->tags[row] = tag;
        } else if (result == FULL || walk->stops) {
            return result;
        } else {
            walk->status[row] = (uint8_t)(REFUSED_BIT | (walk->facts & 0x7F));
        }
    }
    begin_rows(walk, walk->row);
    return TAKEN;
}

/* Where the items of a list begin; the end of the data for a wrong place. */
static inline const uint8_t *list_at(const Walk *walk, const Array *lists, int64_t list)
{
    int64_t start = read64(lists->bytes, 3 * list + 1), size = walk->data_end - walk->data;
    return walk->data + (start < 0 || start > size ? size : start);
}

static inline int64_t items_of(const Array *lists, int64_t list)
{
    return read64(lists->bytes, 3 * list + 2);
}

/* Write a field of an item; false if the array is too short. */
static inline bool write_item(const Array *array, int width, int64_t item, int64_t value)
{
    bool fits = item < array->length;
    if (fits) {
        write_integer(array->bytes, width, item, value);
    }
    return fits;
}

static inline bool write_item_span(const Array *array, int64_t item, int64_t start, int64_t size)
{
    bool fits = item < array->length / 3;
    if (fits) {
        write64(array->bytes, 3 * item, item);
        write64(array->bytes, 3 * item + 1, start);
        write64(array->bytes, 3 * item + 2, size);
    }
    return fits;
}

/* What the generated file says about the columns and walks of each version. */
typedef enum { FIXED, SPAN, CELLS } Form;

typedef struct {
    Form form;
    int width; /* or the number among columns of spans, or of cells */
} ColumnForm;

typedef struct {
    int tag;
    int column;
} Use;

#define MOST_FIELDS 16

typedef struct {
    int column;
    bool (*read)(const Walk *walk, const Array *lists, const Array *fields, int64_t *sizes);
    int field_count;
    int widths[MOST_FIELDS];
} ItemsOf;

typedef struct {
    const char *digest;
    int (*walk)(Walk *walk);
    const ColumnForm *forms;
    int column_count;
    const Use *uses;
    size_t use_count;
    const ItemsOf *items; /* up to the column -1 */
} Version;

extern const Version versions[];
extern const int version_count;

#endif
