/* The walks over batches of messages, one for each protocol version.

   Each function reads one message and returns TAKEN, REFUSED, or FULL if memory for its values is too small. It adds a
   message's values only after it has checked the whole message, and checks each count or length against the remaining
   bytes before use.

   Generated from the spec by `python -m codegen regen`; do not edit. */

#include "walk.h"

#define STREAMING_FACT 1
#define TWO_PHASE_FACT 2
#define PARALLEL_FACT 4

#define FINAL_LSN_COLUMN 0
#define COMMIT_TIMESTAMP_COLUMN 1
#define XID_COLUMN 2
#define FLAGS_COLUMN 3
#define MESSAGE_LSN_COLUMN 4
#define PREFIX_COLUMN 5
#define CONTENT_COLUMN 6
#define COMMIT_LSN_COLUMN 7
#define END_LSN_COLUMN 8
#define ORIGIN_LSN_COLUMN 9
#define NAME_COLUMN 10
#define RELATION_ID_COLUMN 11
#define NAMESPACE_COLUMN 12
#define REPLICA_IDENTITY_COLUMN 13
#define COLUMNS_COLUMN 14
#define TYPE_ID_COLUMN 15
#define NEW_COLUMN 16
#define OLD_KIND_COLUMN 17
#define OLD_COLUMN 18
#define OPTIONS_COLUMN 19
#define RELATION_IDS_COLUMN 20
#define SUBXID_COLUMN 21
#define PREPARE_LSN_COLUMN 22
#define PREPARE_TIMESTAMP_COLUMN 23
#define GID_COLUMN 24
#define PREPARE_END_LSN_COLUMN 25
#define ROLLBACK_END_LSN_COLUMN 26
#define ROLLBACK_TIMESTAMP_COLUMN 27
#define FIRST_SEGMENT_COLUMN 28
#define ABORT_LSN_COLUMN 29
#define ABORT_TIMESTAMP_COLUMN 30

/* The value of one column. */
static Case case_cell_1(uint8_t kind)
{
    return kind == 0x74 || kind == 0x62 ? VALUED : kind == 0x6E || kind == 0x75 ? BARE : ILLEGAL;
}

/* A column of a Relation. */
static bool skip_column_1(const Walk *walk, const uint8_t **place, const uint8_t *end, int64_t count)
{
    const uint8_t *at = *place;
    int64_t size = 0;
    for (int64_t item = 0; item < count; item++) {
        if (end - at < 1) {
            return false;
        }
        at += 1;
        if ((size = text_size(walk, at, end)) < 0) {
            return false;
        }
        at += size + 1;
        if (end - at < 8) {
            return false;
        }
        at += 8;
    }
    *place = at;
    return count >= 0;
}

static bool items_column_1(const Walk *walk, const Array *lists, const Array *fields, int64_t *sizes)
{
    int64_t item = 0;
    int64_t flags_ = 0;
    int64_t size = 0;
    int64_t name_ = 0;
    int64_t name__size = 0;
    int64_t type_id_ = 0;
    int64_t type_modifier_ = 0;
    for (int64_t list = 0; list < lists->length / 3; list++) {
        const uint8_t *at = list_at(walk, lists, list), *end = walk->data_end;
        for (int64_t left = items_of(lists, list); left > 0; left--) {
            if (end - at < 1) {
                return false;
            }
            flags_ = uint8_at(at);
            at += 1;
            name_ = at - walk->data;
            if ((size = text_size(walk, at, end)) < 0) {
                return false;
            }
            name__size = size;
            at += size + 1;
            if (end - at < 8) {
                return false;
            }
            type_id_ = uint32_at(at);
            type_modifier_ = int32_at(at + 4);
            at += 8;
            if (!write_item(&fields[0], 1, item, flags_)) {
                return false;
            }
            if (!write_item_span(&fields[1], item, name_, name__size)) {
                return false;
            }
            sizes[1] += name__size;
            if (!write_item(&fields[2], 4, item, type_id_)) {
                return false;
            }
            if (!write_item(&fields[3], 4, item, type_modifier_)) {
                return false;
            }
            item++;
        }
    }
    return true;
}

/* Opens a transaction; its changes follow, then Commit. */
static int read_begin_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t final_lsn_ = 0;
    int64_t commit_timestamp_ = 0;
    int64_t xid_ = 0;
    if (end - at < 20) {
        return REFUSED;
    }
    final_lsn_ = uint64_at(at);
    commit_timestamp_ = int64_at(at + 8);
    xid_ = uint32_at(at + 16);
    at += 20;
    if (!final_lsn_) {
        return REFUSED;
    }
    if (at != end) {
        return REFUSED;
    }
    put64(walk, FINAL_LSN_COLUMN, row, final_lsn_);
    put64(walk, COMMIT_TIMESTAMP_COLUMN, row, sum(commit_timestamp_, 946684800000000));
    put32(walk, XID_COLUMN, row, xid_);
    return TAKEN;
}

/* Something that pg_logical_emit_message wrote into the log; sent when the option messages is on. */
static int read_message_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t flags_ = 0;
    int64_t message_lsn_ = 0;
    int64_t size = 0;
    int64_t prefix_ = 0;
    int64_t prefix__size = 0;
    int64_t content_length_ = 0;
    int64_t content_ = 0;
    int64_t content__size = 0;
    if (end - at < 9) {
        return REFUSED;
    }
    flags_ = uint8_at(at);
    message_lsn_ = uint64_at(at + 1);
    at += 9;
    prefix_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    prefix__size = size;
    at += size + 1;
    if (end - at < 4) {
        return REFUSED;
    }
    content_length_ = int32_at(at);
    at += 4;
    if (content_length_ < 0 || content_length_ > end - at) {
        return REFUSED;
    }
    content_ = at - walk->data;
    content__size = content_length_;
    at += content_length_;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 0, PREFIX_COLUMN)) {
        return FULL;
    }
    if (is_full(walk, 1, CONTENT_COLUMN)) {
        return FULL;
    }
    put8(walk, FLAGS_COLUMN, row, flags_);
    put64(walk, MESSAGE_LSN_COLUMN, row, message_lsn_);
    put_span(walk, 0, PREFIX_COLUMN, row, prefix_, prefix__size);
    put_span(walk, 1, CONTENT_COLUMN, row, content_, content__size);
    return TAKEN;
}

/* Closes the transaction that Begin opened. */
static int read_commit_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t flags_ = 0;
    int64_t commit_lsn_ = 0;
    int64_t end_lsn_ = 0;
    int64_t commit_timestamp_ = 0;
    if (end - at < 25) {
        return REFUSED;
    }
    flags_ = uint8_at(at);
    commit_lsn_ = uint64_at(at + 1);
    end_lsn_ = uint64_at(at + 9);
    commit_timestamp_ = int64_at(at + 17);
    at += 25;
    if (flags_ != 0) {
        return REFUSED;
    }
    if (at != end) {
        return REFUSED;
    }
    put64(walk, COMMIT_LSN_COLUMN, row, commit_lsn_);
    put64(walk, END_LSN_COLUMN, row, end_lsn_);
    put64(walk, COMMIT_TIMESTAMP_COLUMN, row, sum(commit_timestamp_, 946684800000000));
    return TAKEN;
}

/* Says which replication origin the transaction was replayed from. */
static int read_origin_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t origin_lsn_ = 0;
    int64_t size = 0;
    int64_t name_ = 0;
    int64_t name__size = 0;
    if (end - at < 8) {
        return REFUSED;
    }
    origin_lsn_ = uint64_at(at);
    at += 8;
    name_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    name__size = size;
    at += size + 1;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 2, NAME_COLUMN)) {
        return FULL;
    }
    put64(walk, ORIGIN_LSN_COLUMN, row, origin_lsn_);
    put_span(walk, 2, NAME_COLUMN, row, name_, name__size);
    return TAKEN;
}

/* Describes a table; sent before the first change that needs it and again when it may have changed. */
static int read_relation_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t relation_id_ = 0;
    int64_t size = 0;
    int64_t namespace_ = 0;
    int64_t namespace__size = 0;
    int64_t name_ = 0;
    int64_t name__size = 0;
    int64_t replica_identity_ = 0;
    int64_t column_count_ = 0;
    int64_t columns_ = 0;
    if (end - at < 4) {
        return REFUSED;
    }
    relation_id_ = uint32_at(at);
    at += 4;
    namespace_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    namespace__size = size;
    at += size + 1;
    name_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    name__size = size;
    at += size + 1;
    if (end - at < 3) {
        return REFUSED;
    }
    replica_identity_ = uint8_at(at);
    column_count_ = int16_at(at + 1);
    at += 3;
    if (replica_identity_ != 0x64 && replica_identity_ != 0x6E && replica_identity_ != 0x66 && replica_identity_ != 0x69) {
        return REFUSED;
    }
    columns_ = at - walk->data;
    if (!skip_column_1(walk, &at, end, column_count_)) {
        return REFUSED;
    }
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 3, NAMESPACE_COLUMN)) {
        return FULL;
    }
    if (is_full(walk, 2, NAME_COLUMN)) {
        return FULL;
    }
    if (is_full(walk, 4, COLUMNS_COLUMN)) {
        return FULL;
    }
    put32(walk, RELATION_ID_COLUMN, row, relation_id_);
    put_span(walk, 3, NAMESPACE_COLUMN, row, namespace_, namespace__size);
    put_span(walk, 2, NAME_COLUMN, row, name_, name__size);
    put8(walk, REPLICA_IDENTITY_COLUMN, row, replica_identity_);
    put_span(walk, 4, COLUMNS_COLUMN, row, columns_, column_count_);
    return TAKEN;
}

/* Names a data type that is not built in, ahead of the Relation that uses it. */
static int read_type_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t type_id_ = 0;
    int64_t size = 0;
    int64_t namespace_ = 0;
    int64_t namespace__size = 0;
    int64_t name_ = 0;
    int64_t name__size = 0;
    if (end - at < 4) {
        return REFUSED;
    }
    type_id_ = uint32_at(at);
    at += 4;
    namespace_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    namespace__size = size;
    at += size + 1;
    name_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    name__size = size;
    at += size + 1;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 3, NAMESPACE_COLUMN)) {
        return FULL;
    }
    if (is_full(walk, 2, NAME_COLUMN)) {
        return FULL;
    }
    put32(walk, TYPE_ID_COLUMN, row, type_id_);
    put_span(walk, 3, NAMESPACE_COLUMN, row, namespace_, namespace__size);
    put_span(walk, 2, NAME_COLUMN, row, name_, name__size);
    return TAKEN;
}

/* A new row. */
static int read_insert_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t relation_id_ = 0;
    int64_t new_kind_ = 0;
    int64_t new__column_count_ = 0;
    int64_t new__cells_ = 0;
    int64_t new__cells__size = 0;
    int result = 0;
    if (end - at < 5) {
        return REFUSED;
    }
    relation_id_ = uint32_at(at);
    new_kind_ = uint8_at(at + 4);
    at += 5;
    if (new_kind_ != 0x4E) {
        return REFUSED;
    }
    if (end - at < 2) {
        return REFUSED;
    }
    new__column_count_ = int16_at(at);
    at += 2;
    if ((result = read_cells(walk, case_cell_1, 4, &at, end, new__column_count_, 0,
                             NEW_COLUMN, &new__cells_, &new__cells__size)) != TAKEN) {
        return result;
    }
    if (at != end) {
        return REFUSED;
    }
    put32(walk, RELATION_ID_COLUMN, row, relation_id_);
    put_cells(walk, NEW_COLUMN, row, new__cells_, new__cells__size);
    return TAKEN;
}

/* A changed row. */
static int read_update_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t relation_id_ = 0;
    int64_t old_kind_ = 0;
    int64_t old__column_count_ = 0;
    int64_t old__cells_ = 0;
    int64_t old__cells__size = 0;
    int result = 0;
    int64_t new_kind_ = 0;
    int64_t new__column_count_ = 0;
    int64_t new__cells_ = 0;
    int64_t new__cells__size = 0;
    if (end - at < 4) {
        return REFUSED;
    }
    relation_id_ = uint32_at(at);
    at += 4;
    old_kind_ = at < end ? *at : 0;
    if (old_kind_ == 0x4B || old_kind_ == 0x4F) {
        at++;
        if (end - at < 2) {
            return REFUSED;
        }
        old__column_count_ = int16_at(at);
        at += 2;
        if ((result = read_cells(walk, case_cell_1, 4, &at, end, old__column_count_, 1,
                                 OLD_COLUMN, &old__cells_, &old__cells__size)) != TAKEN) {
            return result;
        }
    } else {
        old_kind_ = 0;
    }
    if (end - at < 1) {
        return REFUSED;
    }
    new_kind_ = uint8_at(at);
    at += 1;
    if (new_kind_ != 0x4E) {
        return REFUSED;
    }
    if (end - at < 2) {
        return REFUSED;
    }
    new__column_count_ = int16_at(at);
    at += 2;
    if ((result = read_cells(walk, case_cell_1, 4, &at, end, new__column_count_, 0,
                             NEW_COLUMN, &new__cells_, &new__cells__size)) != TAKEN) {
        return result;
    }
    if (at != end) {
        return REFUSED;
    }
    put32(walk, RELATION_ID_COLUMN, row, relation_id_);
    if (old_kind_ != 0) {
        put8(walk, OLD_KIND_COLUMN, row, old_kind_);
        put_cells(walk, OLD_COLUMN, row, old__cells_, old__cells__size);
    }
    put_cells(walk, NEW_COLUMN, row, new__cells_, new__cells__size);
    return TAKEN;
}

/* A deleted row. */
static int read_delete_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t relation_id_ = 0;
    int64_t old_kind_ = 0;
    int64_t old__column_count_ = 0;
    int64_t old__cells_ = 0;
    int64_t old__cells__size = 0;
    int result = 0;
    if (end - at < 5) {
        return REFUSED;
    }
    relation_id_ = uint32_at(at);
    old_kind_ = uint8_at(at + 4);
    at += 5;
    if (old_kind_ != 0x4B && old_kind_ != 0x4F) {
        return REFUSED;
    }
    if (end - at < 2) {
        return REFUSED;
    }
    old__column_count_ = int16_at(at);
    at += 2;
    if ((result = read_cells(walk, case_cell_1, 4, &at, end, old__column_count_, 1,
                             OLD_COLUMN, &old__cells_, &old__cells__size)) != TAKEN) {
        return result;
    }
    if (at != end) {
        return REFUSED;
    }
    put32(walk, RELATION_ID_COLUMN, row, relation_id_);
    put8(walk, OLD_KIND_COLUMN, row, old_kind_);
    put_cells(walk, OLD_COLUMN, row, old__cells_, old__cells__size);
    return TAKEN;
}

/* Tables that were emptied by one TRUNCATE. */
static int read_truncate_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t relation_count_ = 0;
    int64_t options_ = 0;
    int64_t relation_ids_ = 0;
    if (end - at < 5) {
        return REFUSED;
    }
    relation_count_ = int32_at(at);
    options_ = uint8_at(at + 4);
    at += 5;
    relation_ids_ = at - walk->data;
    if (relation_count_ < 0 || relation_count_ > (end - at) / 4) {
        return REFUSED;
    }
    at += relation_count_ * 4;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 5, RELATION_IDS_COLUMN)) {
        return FULL;
    }
    put8(walk, OPTIONS_COLUMN, row, options_);
    put_span(walk, 5, RELATION_IDS_COLUMN, row, relation_ids_, relation_count_);
    return TAKEN;
}

/* Rolls back a streamed transaction, or one of its subtransactions. */
static int read_stream_abort_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t subxid_ = 0;
    if (end - at < 8) {
        return REFUSED;
    }
    xid_ = uint32_at(at);
    subxid_ = uint32_at(at + 4);
    at += 8;
    if (at != end) {
        return REFUSED;
    }
    put32(walk, XID_COLUMN, row, xid_);
    put32(walk, SUBXID_COLUMN, row, subxid_);
    return TAKEN;
}

/* Opens a transaction that was prepared; its changes follow, then Prepare. */
static int read_begin_prepare_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t prepare_lsn_ = 0;
    int64_t end_lsn_ = 0;
    int64_t prepare_timestamp_ = 0;
    int64_t xid_ = 0;
    int64_t size = 0;
    int64_t gid_ = 0;
    int64_t gid__size = 0;
    if (end - at < 28) {
        return REFUSED;
    }
    prepare_lsn_ = uint64_at(at);
    end_lsn_ = uint64_at(at + 8);
    prepare_timestamp_ = int64_at(at + 16);
    xid_ = uint32_at(at + 24);
    at += 28;
    if (!prepare_lsn_) {
        return REFUSED;
    }
    if (!end_lsn_) {
        return REFUSED;
    }
    gid_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    gid__size = size;
    at += size + 1;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 6, GID_COLUMN)) {
        return FULL;
    }
    put64(walk, PREPARE_LSN_COLUMN, row, prepare_lsn_);
    put64(walk, END_LSN_COLUMN, row, end_lsn_);
    put64(walk, PREPARE_TIMESTAMP_COLUMN, row, sum(prepare_timestamp_, 946684800000000));
    put32(walk, XID_COLUMN, row, xid_);
    put_span(walk, 6, GID_COLUMN, row, gid_, gid__size);
    return TAKEN;
}

/* Closes the transaction that Begin Prepare opened; it is decided later. */
static int read_prepare_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t flags_ = 0;
    int64_t prepare_lsn_ = 0;
    int64_t end_lsn_ = 0;
    int64_t prepare_timestamp_ = 0;
    int64_t xid_ = 0;
    int64_t size = 0;
    int64_t gid_ = 0;
    int64_t gid__size = 0;
    if (end - at < 29) {
        return REFUSED;
    }
    flags_ = uint8_at(at);
    prepare_lsn_ = uint64_at(at + 1);
    end_lsn_ = uint64_at(at + 9);
    prepare_timestamp_ = int64_at(at + 17);
    xid_ = uint32_at(at + 25);
    at += 29;
    if (flags_ != 0) {
        return REFUSED;
    }
    if (!prepare_lsn_) {
        return REFUSED;
    }
    if (!end_lsn_) {
        return REFUSED;
    }
    gid_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    gid__size = size;
    at += size + 1;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 6, GID_COLUMN)) {
        return FULL;
    }
    put64(walk, PREPARE_LSN_COLUMN, row, prepare_lsn_);
    put64(walk, END_LSN_COLUMN, row, end_lsn_);
    put64(walk, PREPARE_TIMESTAMP_COLUMN, row, sum(prepare_timestamp_, 946684800000000));
    put32(walk, XID_COLUMN, row, xid_);
    put_span(walk, 6, GID_COLUMN, row, gid_, gid__size);
    return TAKEN;
}

/* Commits a transaction that was prepared before. */
static int read_commit_prepared_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t flags_ = 0;
    int64_t commit_lsn_ = 0;
    int64_t end_lsn_ = 0;
    int64_t commit_timestamp_ = 0;
    int64_t xid_ = 0;
    int64_t size = 0;
    int64_t gid_ = 0;
    int64_t gid__size = 0;
    if (end - at < 29) {
        return REFUSED;
    }
    flags_ = uint8_at(at);
    commit_lsn_ = uint64_at(at + 1);
    end_lsn_ = uint64_at(at + 9);
    commit_timestamp_ = int64_at(at + 17);
    xid_ = uint32_at(at + 25);
    at += 29;
    if (flags_ != 0) {
        return REFUSED;
    }
    if (!commit_lsn_) {
        return REFUSED;
    }
    if (!end_lsn_) {
        return REFUSED;
    }
    gid_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    gid__size = size;
    at += size + 1;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 6, GID_COLUMN)) {
        return FULL;
    }
    put64(walk, COMMIT_LSN_COLUMN, row, commit_lsn_);
    put64(walk, END_LSN_COLUMN, row, end_lsn_);
    put64(walk, COMMIT_TIMESTAMP_COLUMN, row, sum(commit_timestamp_, 946684800000000));
    put32(walk, XID_COLUMN, row, xid_);
    put_span(walk, 6, GID_COLUMN, row, gid_, gid__size);
    return TAKEN;
}

/* Rolls back a transaction that was prepared before. */
static int read_rollback_prepared_1(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t flags_ = 0;
    int64_t prepare_end_lsn_ = 0;
    int64_t rollback_end_lsn_ = 0;
    int64_t prepare_timestamp_ = 0;
    int64_t rollback_timestamp_ = 0;
    int64_t xid_ = 0;
    int64_t size = 0;
    int64_t gid_ = 0;
    int64_t gid__size = 0;
    if (end - at < 37) {
        return REFUSED;
    }
    flags_ = uint8_at(at);
    prepare_end_lsn_ = uint64_at(at + 1);
    rollback_end_lsn_ = uint64_at(at + 9);
    prepare_timestamp_ = int64_at(at + 17);
    rollback_timestamp_ = int64_at(at + 25);
    xid_ = uint32_at(at + 33);
    at += 37;
    if (flags_ != 0) {
        return REFUSED;
    }
    if (!prepare_end_lsn_) {
        return REFUSED;
    }
    if (!rollback_end_lsn_) {
        return REFUSED;
    }
    gid_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    gid__size = size;
    at += size + 1;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 6, GID_COLUMN)) {
        return FULL;
    }
    put64(walk, PREPARE_END_LSN_COLUMN, row, prepare_end_lsn_);
    put64(walk, ROLLBACK_END_LSN_COLUMN, row, rollback_end_lsn_);
    put64(walk, PREPARE_TIMESTAMP_COLUMN, row, sum(prepare_timestamp_, 946684800000000));
    put64(walk, ROLLBACK_TIMESTAMP_COLUMN, row, sum(rollback_timestamp_, 946684800000000));
    put32(walk, XID_COLUMN, row, xid_);
    put_span(walk, 6, GID_COLUMN, row, gid_, gid__size);
    return TAKEN;
}

/* Something that pg_logical_emit_message wrote into the log; sent when the option messages is on. */
static int read_message_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t flags_ = 0;
    int64_t message_lsn_ = 0;
    int64_t size = 0;
    int64_t prefix_ = 0;
    int64_t prefix__size = 0;
    int64_t content_length_ = 0;
    int64_t content_ = 0;
    int64_t content__size = 0;
    if (walk->facts & STREAMING_FACT) {
        if (end - at < 4) {
            return REFUSED;
        }
        xid_ = uint32_at(at);
        at += 4;
    }
    if (end - at < 9) {
        return REFUSED;
    }
    flags_ = uint8_at(at);
    message_lsn_ = uint64_at(at + 1);
    at += 9;
    prefix_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    prefix__size = size;
    at += size + 1;
    if (end - at < 4) {
        return REFUSED;
    }
    content_length_ = int32_at(at);
    at += 4;
    if (content_length_ < 0 || content_length_ > end - at) {
        return REFUSED;
    }
    content_ = at - walk->data;
    content__size = content_length_;
    at += content_length_;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 0, PREFIX_COLUMN)) {
        return FULL;
    }
    if (is_full(walk, 1, CONTENT_COLUMN)) {
        return FULL;
    }
    if (walk->facts & STREAMING_FACT) {
        put32(walk, XID_COLUMN, row, xid_);
    }
    put8(walk, FLAGS_COLUMN, row, flags_);
    put64(walk, MESSAGE_LSN_COLUMN, row, message_lsn_);
    put_span(walk, 0, PREFIX_COLUMN, row, prefix_, prefix__size);
    put_span(walk, 1, CONTENT_COLUMN, row, content_, content__size);
    return TAKEN;
}

/* Describes a table; sent before the first change that needs it and again when it may have changed. */
static int read_relation_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t relation_id_ = 0;
    int64_t size = 0;
    int64_t namespace_ = 0;
    int64_t namespace__size = 0;
    int64_t name_ = 0;
    int64_t name__size = 0;
    int64_t replica_identity_ = 0;
    int64_t column_count_ = 0;
    int64_t columns_ = 0;
    if (walk->facts & STREAMING_FACT) {
        if (end - at < 4) {
            return REFUSED;
        }
        xid_ = uint32_at(at);
        at += 4;
    }
    if (end - at < 4) {
        return REFUSED;
    }
    relation_id_ = uint32_at(at);
    at += 4;
    namespace_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    namespace__size = size;
    at += size + 1;
    name_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    name__size = size;
    at += size + 1;
    if (end - at < 3) {
        return REFUSED;
    }
    replica_identity_ = uint8_at(at);
    column_count_ = int16_at(at + 1);
    at += 3;
    if (replica_identity_ != 0x64 && replica_identity_ != 0x6E && replica_identity_ != 0x66 && replica_identity_ != 0x69) {
        return REFUSED;
    }
    columns_ = at - walk->data;
    if (!skip_column_1(walk, &at, end, column_count_)) {
        return REFUSED;
    }
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 3, NAMESPACE_COLUMN)) {
        return FULL;
    }
    if (is_full(walk, 2, NAME_COLUMN)) {
        return FULL;
    }
    if (is_full(walk, 4, COLUMNS_COLUMN)) {
        return FULL;
    }
    if (walk->facts & STREAMING_FACT) {
        put32(walk, XID_COLUMN, row, xid_);
    }
    put32(walk, RELATION_ID_COLUMN, row, relation_id_);
    put_span(walk, 3, NAMESPACE_COLUMN, row, namespace_, namespace__size);
    put_span(walk, 2, NAME_COLUMN, row, name_, name__size);
    put8(walk, REPLICA_IDENTITY_COLUMN, row, replica_identity_);
    put_span(walk, 4, COLUMNS_COLUMN, row, columns_, column_count_);
    return TAKEN;
}

/* Names a data type that is not built in, ahead of the Relation that uses it. */
static int read_type_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t type_id_ = 0;
    int64_t size = 0;
    int64_t namespace_ = 0;
    int64_t namespace__size = 0;
    int64_t name_ = 0;
    int64_t name__size = 0;
    if (walk->facts & STREAMING_FACT) {
        if (end - at < 4) {
            return REFUSED;
        }
        xid_ = uint32_at(at);
        at += 4;
    }
    if (end - at < 4) {
        return REFUSED;
    }
    type_id_ = uint32_at(at);
    at += 4;
    namespace_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    namespace__size = size;
    at += size + 1;
    name_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    name__size = size;
    at += size + 1;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 3, NAMESPACE_COLUMN)) {
        return FULL;
    }
    if (is_full(walk, 2, NAME_COLUMN)) {
        return FULL;
    }
    if (walk->facts & STREAMING_FACT) {
        put32(walk, XID_COLUMN, row, xid_);
    }
    put32(walk, TYPE_ID_COLUMN, row, type_id_);
    put_span(walk, 3, NAMESPACE_COLUMN, row, namespace_, namespace__size);
    put_span(walk, 2, NAME_COLUMN, row, name_, name__size);
    return TAKEN;
}

/* A new row. */
static int read_insert_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t relation_id_ = 0;
    int64_t new_kind_ = 0;
    int64_t new__column_count_ = 0;
    int64_t new__cells_ = 0;
    int64_t new__cells__size = 0;
    int result = 0;
    if (walk->facts & STREAMING_FACT) {
        if (end - at < 4) {
            return REFUSED;
        }
        xid_ = uint32_at(at);
        at += 4;
    }
    if (end - at < 5) {
        return REFUSED;
    }
    relation_id_ = uint32_at(at);
    new_kind_ = uint8_at(at + 4);
    at += 5;
    if (new_kind_ != 0x4E) {
        return REFUSED;
    }
    if (end - at < 2) {
        return REFUSED;
    }
    new__column_count_ = int16_at(at);
    at += 2;
    if ((result = read_cells(walk, case_cell_1, 4, &at, end, new__column_count_, 0,
                             NEW_COLUMN, &new__cells_, &new__cells__size)) != TAKEN) {
        return result;
    }
    if (at != end) {
        return REFUSED;
    }
    if (walk->facts & STREAMING_FACT) {
        put32(walk, XID_COLUMN, row, xid_);
    }
    put32(walk, RELATION_ID_COLUMN, row, relation_id_);
    put_cells(walk, NEW_COLUMN, row, new__cells_, new__cells__size);
    return TAKEN;
}

/* A changed row. */
static int read_update_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t relation_id_ = 0;
    int64_t old_kind_ = 0;
    int64_t old__column_count_ = 0;
    int64_t old__cells_ = 0;
    int64_t old__cells__size = 0;
    int result = 0;
    int64_t new_kind_ = 0;
    int64_t new__column_count_ = 0;
    int64_t new__cells_ = 0;
    int64_t new__cells__size = 0;
    if (walk->facts & STREAMING_FACT) {
        if (end - at < 4) {
            return REFUSED;
        }
        xid_ = uint32_at(at);
        at += 4;
    }
    if (end - at < 4) {
        return REFUSED;
    }
    relation_id_ = uint32_at(at);
    at += 4;
    old_kind_ = at < end ? *at : 0;
    if (old_kind_ == 0x4B || old_kind_ == 0x4F) {
        at++;
        if (end - at < 2) {
            return REFUSED;
        }
        old__column_count_ = int16_at(at);
        at += 2;
        if ((result = read_cells(walk, case_cell_1, 4, &at, end, old__column_count_, 1,
                                 OLD_COLUMN, &old__cells_, &old__cells__size)) != TAKEN) {
            return result;
        }
    } else {
        old_kind_ = 0;
    }
    if (end - at < 1) {
        return REFUSED;
    }
    new_kind_ = uint8_at(at);
    at += 1;
    if (new_kind_ != 0x4E) {
        return REFUSED;
    }
    if (end - at < 2) {
        return REFUSED;
    }
    new__column_count_ = int16_at(at);
    at += 2;
    if ((result = read_cells(walk, case_cell_1, 4, &at, end, new__column_count_, 0,
                             NEW_COLUMN, &new__cells_, &new__cells__size)) != TAKEN) {
        return result;
    }
    if (at != end) {
        return REFUSED;
    }
    if (walk->facts & STREAMING_FACT) {
        put32(walk, XID_COLUMN, row, xid_);
    }
    put32(walk, RELATION_ID_COLUMN, row, relation_id_);
    if (old_kind_ != 0) {
        put8(walk, OLD_KIND_COLUMN, row, old_kind_);
        put_cells(walk, OLD_COLUMN, row, old__cells_, old__cells__size);
    }
    put_cells(walk, NEW_COLUMN, row, new__cells_, new__cells__size);
    return TAKEN;
}

/* A deleted row. */
static int read_delete_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t relation_id_ = 0;
    int64_t old_kind_ = 0;
    int64_t old__column_count_ = 0;
    int64_t old__cells_ = 0;
    int64_t old__cells__size = 0;
    int result = 0;
    if (walk->facts & STREAMING_FACT) {
        if (end - at < 4) {
            return REFUSED;
        }
        xid_ = uint32_at(at);
        at += 4;
    }
    if (end - at < 5) {
        return REFUSED;
    }
    relation_id_ = uint32_at(at);
    old_kind_ = uint8_at(at + 4);
    at += 5;
    if (old_kind_ != 0x4B && old_kind_ != 0x4F) {
        return REFUSED;
    }
    if (end - at < 2) {
        return REFUSED;
    }
    old__column_count_ = int16_at(at);
    at += 2;
    if ((result = read_cells(walk, case_cell_1, 4, &at, end, old__column_count_, 1,
                             OLD_COLUMN, &old__cells_, &old__cells__size)) != TAKEN) {
        return result;
    }
    if (at != end) {
        return REFUSED;
    }
    if (walk->facts & STREAMING_FACT) {
        put32(walk, XID_COLUMN, row, xid_);
    }
    put32(walk, RELATION_ID_COLUMN, row, relation_id_);
    put8(walk, OLD_KIND_COLUMN, row, old_kind_);
    put_cells(walk, OLD_COLUMN, row, old__cells_, old__cells__size);
    return TAKEN;
}

/* Tables that were emptied by one TRUNCATE. */
static int read_truncate_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t relation_count_ = 0;
    int64_t options_ = 0;
    int64_t relation_ids_ = 0;
    if (walk->facts & STREAMING_FACT) {
        if (end - at < 4) {
            return REFUSED;
        }
        xid_ = uint32_at(at);
        at += 4;
    }
    if (end - at < 5) {
        return REFUSED;
    }
    relation_count_ = int32_at(at);
    options_ = uint8_at(at + 4);
    at += 5;
    relation_ids_ = at - walk->data;
    if (relation_count_ < 0 || relation_count_ > (end - at) / 4) {
        return REFUSED;
    }
    at += relation_count_ * 4;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 5, RELATION_IDS_COLUMN)) {
        return FULL;
    }
    if (walk->facts & STREAMING_FACT) {
        put32(walk, XID_COLUMN, row, xid_);
    }
    put8(walk, OPTIONS_COLUMN, row, options_);
    put_span(walk, 5, RELATION_IDS_COLUMN, row, relation_ids_, relation_count_);
    return TAKEN;
}

/* Opens a segment of a transaction that is still in progress. */
static int read_stream_start_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t first_segment_ = 0;
    if (end - at < 5) {
        return REFUSED;
    }
    xid_ = uint32_at(at);
    first_segment_ = uint8_at(at + 4);
    at += 5;
    if (first_segment_ > 1) {
        return REFUSED;
    }
    if (at != end) {
        return REFUSED;
    }
    put32(walk, XID_COLUMN, row, xid_);
    put8(walk, FIRST_SEGMENT_COLUMN, row, first_segment_);
    return TAKEN;
}

/* Closes the segment that Stream Start opened. */
static int read_stream_stop_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    (void)walk, (void)row;
    
    
    if (at != end) {
        return REFUSED;
    }
    
    return TAKEN;
}

/* Commits a streamed transaction. */
static int read_stream_commit_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t flags_ = 0;
    int64_t commit_lsn_ = 0;
    int64_t end_lsn_ = 0;
    int64_t commit_timestamp_ = 0;
    if (end - at < 29) {
        return REFUSED;
    }
    xid_ = uint32_at(at);
    flags_ = uint8_at(at + 4);
    commit_lsn_ = uint64_at(at + 5);
    end_lsn_ = uint64_at(at + 13);
    commit_timestamp_ = int64_at(at + 21);
    at += 29;
    if (flags_ != 0) {
        return REFUSED;
    }
    if (at != end) {
        return REFUSED;
    }
    put32(walk, XID_COLUMN, row, xid_);
    put64(walk, COMMIT_LSN_COLUMN, row, commit_lsn_);
    put64(walk, END_LSN_COLUMN, row, end_lsn_);
    put64(walk, COMMIT_TIMESTAMP_COLUMN, row, sum(commit_timestamp_, 946684800000000));
    return TAKEN;
}

/* Prepares a streamed transaction; it is decided later. */
static int read_stream_prepare_2(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t flags_ = 0;
    int64_t prepare_lsn_ = 0;
    int64_t end_lsn_ = 0;
    int64_t prepare_timestamp_ = 0;
    int64_t xid_ = 0;
    int64_t size = 0;
    int64_t gid_ = 0;
    int64_t gid__size = 0;
    if (end - at < 29) {
        return REFUSED;
    }
    flags_ = uint8_at(at);
    prepare_lsn_ = uint64_at(at + 1);
    end_lsn_ = uint64_at(at + 9);
    prepare_timestamp_ = int64_at(at + 17);
    xid_ = uint32_at(at + 25);
    at += 29;
    if (flags_ != 0) {
        return REFUSED;
    }
    if (!prepare_lsn_) {
        return REFUSED;
    }
    if (!end_lsn_) {
        return REFUSED;
    }
    gid_ = at - walk->data;
    if ((size = text_size(walk, at, end)) < 0) {
        return REFUSED;
    }
    gid__size = size;
    at += size + 1;
    if (at != end) {
        return REFUSED;
    }
    if (is_full(walk, 6, GID_COLUMN)) {
        return FULL;
    }
    put64(walk, PREPARE_LSN_COLUMN, row, prepare_lsn_);
    put64(walk, END_LSN_COLUMN, row, end_lsn_);
    put64(walk, PREPARE_TIMESTAMP_COLUMN, row, sum(prepare_timestamp_, 946684800000000));
    put32(walk, XID_COLUMN, row, xid_);
    put_span(walk, 6, GID_COLUMN, row, gid_, gid__size);
    return TAKEN;
}

/* Rolls back a streamed transaction, or one of its subtransactions. */
static int read_stream_abort_4(const Walk *walk, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int64_t xid_ = 0;
    int64_t subxid_ = 0;
    int64_t abort_lsn_ = 0;
    int64_t abort_timestamp_ = 0;
    if (end - at < 8) {
        return REFUSED;
    }
    xid_ = uint32_at(at);
    subxid_ = uint32_at(at + 4);
    at += 8;
    if (walk->facts & PARALLEL_FACT) {
        if (end - at < 16) {
            return REFUSED;
        }
        abort_lsn_ = uint64_at(at);
        abort_timestamp_ = int64_at(at + 8);
        at += 16;
    }
    if (at != end) {
        return REFUSED;
    }
    put32(walk, XID_COLUMN, row, xid_);
    put32(walk, SUBXID_COLUMN, row, subxid_);
    if (walk->facts & PARALLEL_FACT) {
        put64(walk, ABORT_LSN_COLUMN, row, abort_lsn_);
        put64(walk, ABORT_TIMESTAMP_COLUMN, row, sum(abort_timestamp_, 946684800000000));
    }
    return TAKEN;
}

static int message_of_version_1(Walk *walk, uint8_t tag, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int result = REFUSED;
    switch (tag) {
    case 0x49:
        result = read_insert_1(walk, at, end, row);
        break;
    case 0x55:
        result = read_update_1(walk, at, end, row);
        break;
    case 0x44:
        result = read_delete_1(walk, at, end, row);
        break;
    case 0x42:
        result = read_begin_1(walk, at, end, row);
        break;
    case 0x4D:
        result = read_message_1(walk, at, end, row);
        break;
    case 0x43:
        result = read_commit_1(walk, at, end, row);
        break;
    case 0x4F:
        result = read_origin_1(walk, at, end, row);
        break;
    case 0x52:
        result = read_relation_1(walk, at, end, row);
        break;
    case 0x59:
        result = read_type_1(walk, at, end, row);
        break;
    case 0x54:
        result = read_truncate_1(walk, at, end, row);
        break;
    case 0x41:
        result = read_stream_abort_1(walk, at, end, row);
        break;
    case 0x62:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_begin_prepare_1(walk, at, end, row);
        break;
    case 0x50:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_prepare_1(walk, at, end, row);
        break;
    case 0x4B:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_commit_prepared_1(walk, at, end, row);
        break;
    case 0x72:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_rollback_prepared_1(walk, at, end, row);
        break;
    }
    return result;
}

static int walk_version_1(Walk *walk)
{
    return walk_rows(walk, message_of_version_1);
}

static int message_of_version_2(Walk *walk, uint8_t tag, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int result = REFUSED;
    switch (tag) {
    case 0x49:
        result = read_insert_2(walk, at, end, row);
        break;
    case 0x55:
        result = read_update_2(walk, at, end, row);
        break;
    case 0x44:
        result = read_delete_2(walk, at, end, row);
        break;
    case 0x42:
        result = read_begin_1(walk, at, end, row);
        break;
    case 0x4D:
        result = read_message_2(walk, at, end, row);
        break;
    case 0x43:
        result = read_commit_1(walk, at, end, row);
        break;
    case 0x4F:
        result = read_origin_1(walk, at, end, row);
        break;
    case 0x52:
        result = read_relation_2(walk, at, end, row);
        break;
    case 0x59:
        result = read_type_2(walk, at, end, row);
        break;
    case 0x54:
        result = read_truncate_2(walk, at, end, row);
        break;
    case 0x53:
        result = read_stream_start_2(walk, at, end, row);
        walk->facts |= result == TAKEN ? STREAMING_FACT : 0;
        break;
    case 0x45:
        result = read_stream_stop_2(walk, at, end, row);
        walk->facts &= ~(int64_t)(result == TAKEN ? STREAMING_FACT : 0);
        break;
    case 0x63:
        result = read_stream_commit_2(walk, at, end, row);
        break;
    case 0x41:
        result = read_stream_abort_1(walk, at, end, row);
        break;
    case 0x62:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_begin_prepare_1(walk, at, end, row);
        break;
    case 0x50:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_prepare_1(walk, at, end, row);
        break;
    case 0x4B:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_commit_prepared_1(walk, at, end, row);
        break;
    case 0x72:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_rollback_prepared_1(walk, at, end, row);
        break;
    case 0x70:
        if (!(walk->facts & TWO_PHASE_FACT)) {
            break;
        }
        result = read_stream_prepare_2(walk, at, end, row);
        break;
    }
    return result;
}

static int walk_version_2(Walk *walk)
{
    return walk_rows(walk, message_of_version_2);
}

static int message_of_version_3(Walk *walk, uint8_t tag, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int result = REFUSED;
    switch (tag) {
    case 0x49:
        result = read_insert_2(walk, at, end, row);
        break;
    case 0x55:
        result = read_update_2(walk, at, end, row);
        break;
    case 0x44:
        result = read_delete_2(walk, at, end, row);
        break;
    case 0x42:
        result = read_begin_1(walk, at, end, row);
        break;
    case 0x4D:
        result = read_message_2(walk, at, end, row);
        break;
    case 0x43:
        result = read_commit_1(walk, at, end, row);
        break;
    case 0x4F:
        result = read_origin_1(walk, at, end, row);
        break;
    case 0x52:
        result = read_relation_2(walk, at, end, row);
        break;
    case 0x59:
        result = read_type_2(walk, at, end, row);
        break;
    case 0x54:
        result = read_truncate_2(walk, at, end, row);
        break;
    case 0x53:
        result = read_stream_start_2(walk, at, end, row);
        walk->facts |= result == TAKEN ? STREAMING_FACT : 0;
        break;
    case 0x45:
        result = read_stream_stop_2(walk, at, end, row);
        walk->facts &= ~(int64_t)(result == TAKEN ? STREAMING_FACT : 0);
        break;
    case 0x63:
        result = read_stream_commit_2(walk, at, end, row);
        break;
    case 0x41:
        result = read_stream_abort_1(walk, at, end, row);
        break;
    case 0x62:
        result = read_begin_prepare_1(walk, at, end, row);
        break;
    case 0x50:
        result = read_prepare_1(walk, at, end, row);
        break;
    case 0x4B:
        result = read_commit_prepared_1(walk, at, end, row);
        break;
    case 0x72:
        result = read_rollback_prepared_1(walk, at, end, row);
        break;
    case 0x70:
        result = read_stream_prepare_2(walk, at, end, row);
        break;
    }
    return result;
}

static int walk_version_3(Walk *walk)
{
    return walk_rows(walk, message_of_version_3);
}

static int message_of_version_4(Walk *walk, uint8_t tag, const uint8_t *at, const uint8_t *end, int64_t row)
{
    int result = REFUSED;
    switch (tag) {
    case 0x49:
        result = read_insert_2(walk, at, end, row);
        break;
    case 0x55:
        result = read_update_2(walk, at, end, row);
        break;
    case 0x44:
        result = read_delete_2(walk, at, end, row);
        break;
    case 0x42:
        result = read_begin_1(walk, at, end, row);
        break;
    case 0x4D:
        result = read_message_2(walk, at, end, row);
        break;
    case 0x43:
        result = read_commit_1(walk, at, end, row);
        break;
    case 0x4F:
        result = read_origin_1(walk, at, end, row);
        break;
    case 0x52:
        result = read_relation_2(walk, at, end, row);
        break;
    case 0x59:
        result = read_type_2(walk, at, end, row);
        break;
    case 0x54:
        result = read_truncate_2(walk, at, end, row);
        break;
    case 0x53:
        result = read_stream_start_2(walk, at, end, row);
        walk->facts |= result == TAKEN ? STREAMING_FACT : 0;
        break;
    case 0x45:
        result = read_stream_stop_2(walk, at, end, row);
        walk->facts &= ~(int64_t)(result == TAKEN ? STREAMING_FACT : 0);
        break;
    case 0x63:
        result = read_stream_commit_2(walk, at, end, row);
        break;
    case 0x41:
        result = read_stream_abort_4(walk, at, end, row);
        break;
    case 0x62:
        result = read_begin_prepare_1(walk, at, end, row);
        break;
    case 0x50:
        result = read_prepare_1(walk, at, end, row);
        break;
    case 0x4B:
        result = read_commit_prepared_1(walk, at, end, row);
        break;
    case 0x72:
        result = read_rollback_prepared_1(walk, at, end, row);
        break;
    case 0x70:
        result = read_stream_prepare_2(walk, at, end, row);
        break;
    }
    return result;
}

static int walk_version_4(Walk *walk)
{
    return walk_rows(walk, message_of_version_4);
}


static const ColumnForm forms[] = {
    {FIXED, 8}, /* final_lsn */
    {FIXED, 8}, /* commit_timestamp */
    {FIXED, 4}, /* xid */
    {FIXED, 1}, /* flags */
    {FIXED, 8}, /* message_lsn */
    {SPAN, 0}, /* prefix */
    {SPAN, 1}, /* content */
    {FIXED, 8}, /* commit_lsn */
    {FIXED, 8}, /* end_lsn */
    {FIXED, 8}, /* origin_lsn */
    {SPAN, 2}, /* name */
    {FIXED, 4}, /* relation_id */
    {SPAN, 3}, /* namespace */
    {FIXED, 1}, /* replica_identity */
    {SPAN, 4}, /* columns */
    {FIXED, 4}, /* type_id */
    {CELLS, 0}, /* new */
    {FIXED, 1}, /* old_kind */
    {CELLS, 1}, /* old */
    {FIXED, 1}, /* options */
    {SPAN, 5}, /* relation_ids */
    {FIXED, 4}, /* subxid */
    {FIXED, 8}, /* prepare_lsn */
    {FIXED, 8}, /* prepare_timestamp */
    {SPAN, 6}, /* gid */
    {FIXED, 8}, /* prepare_end_lsn */
    {FIXED, 8}, /* rollback_end_lsn */
    {FIXED, 8}, /* rollback_timestamp */
    {FIXED, 1}, /* first_segment */
    {FIXED, 8}, /* abort_lsn */
    {FIXED, 8}, /* abort_timestamp */
};

static const Use uses_1[] = {
    {0x42, FINAL_LSN_COLUMN},
    {0x42, COMMIT_TIMESTAMP_COLUMN},
    {0x42, XID_COLUMN},
    {0x4D, FLAGS_COLUMN},
    {0x4D, MESSAGE_LSN_COLUMN},
    {0x4D, PREFIX_COLUMN},
    {0x4D, CONTENT_COLUMN},
    {0x43, COMMIT_LSN_COLUMN},
    {0x43, END_LSN_COLUMN},
    {0x43, COMMIT_TIMESTAMP_COLUMN},
    {0x4F, ORIGIN_LSN_COLUMN},
    {0x4F, NAME_COLUMN},
    {0x52, RELATION_ID_COLUMN},
    {0x52, NAMESPACE_COLUMN},
    {0x52, NAME_COLUMN},
    {0x52, REPLICA_IDENTITY_COLUMN},
    {0x52, COLUMNS_COLUMN},
    {0x59, TYPE_ID_COLUMN},
    {0x59, NAMESPACE_COLUMN},
    {0x59, NAME_COLUMN},
    {0x49, RELATION_ID_COLUMN},
    {0x49, NEW_COLUMN},
    {0x55, RELATION_ID_COLUMN},
    {0x55, OLD_KIND_COLUMN},
    {0x55, OLD_COLUMN},
    {0x55, NEW_COLUMN},
    {0x44, RELATION_ID_COLUMN},
    {0x44, OLD_KIND_COLUMN},
    {0x44, OLD_COLUMN},
    {0x54, OPTIONS_COLUMN},
    {0x54, RELATION_IDS_COLUMN},
    {0x41, XID_COLUMN},
    {0x41, SUBXID_COLUMN},
    {0x62, PREPARE_LSN_COLUMN},
    {0x62, END_LSN_COLUMN},
    {0x62, PREPARE_TIMESTAMP_COLUMN},
    {0x62, XID_COLUMN},
    {0x62, GID_COLUMN},
    {0x50, PREPARE_LSN_COLUMN},
    {0x50, END_LSN_COLUMN},
    {0x50, PREPARE_TIMESTAMP_COLUMN},
    {0x50, XID_COLUMN},
    {0x50, GID_COLUMN},
    {0x4B, COMMIT_LSN_COLUMN},
    {0x4B, END_LSN_COLUMN},
    {0x4B, COMMIT_TIMESTAMP_COLUMN},
    {0x4B, XID_COLUMN},
    {0x4B, GID_COLUMN},
    {0x72, PREPARE_END_LSN_COLUMN},
    {0x72, ROLLBACK_END_LSN_COLUMN},
    {0x72, PREPARE_TIMESTAMP_COLUMN},
    {0x72, ROLLBACK_TIMESTAMP_COLUMN},
    {0x72, XID_COLUMN},
    {0x72, GID_COLUMN},
};

_Static_assert(4 <= MOST_FIELDS, "columns has too many fields");
static const ItemsOf items_1[] = {
    {COLUMNS_COLUMN, items_column_1, 4, {1, 8, 4, 4}},
    {-1, NULL, 0, {0}},
};

static const Use uses_2[] = {
    {0x42, FINAL_LSN_COLUMN},
    {0x42, COMMIT_TIMESTAMP_COLUMN},
    {0x42, XID_COLUMN},
    {0x4D, XID_COLUMN},
    {0x4D, FLAGS_COLUMN},
    {0x4D, MESSAGE_LSN_COLUMN},
    {0x4D, PREFIX_COLUMN},
    {0x4D, CONTENT_COLUMN},
    {0x43, COMMIT_LSN_COLUMN},
    {0x43, END_LSN_COLUMN},
    {0x43, COMMIT_TIMESTAMP_COLUMN},
    {0x4F, ORIGIN_LSN_COLUMN},
    {0x4F, NAME_COLUMN},
    {0x52, XID_COLUMN},
    {0x52, RELATION_ID_COLUMN},
    {0x52, NAMESPACE_COLUMN},
    {0x52, NAME_COLUMN},
    {0x52, REPLICA_IDENTITY_COLUMN},
    {0x52, COLUMNS_COLUMN},
    {0x59, XID_COLUMN},
    {0x59, TYPE_ID_COLUMN},
    {0x59, NAMESPACE_COLUMN},
    {0x59, NAME_COLUMN},
    {0x49, XID_COLUMN},
    {0x49, RELATION_ID_COLUMN},
    {0x49, NEW_COLUMN},
    {0x55, XID_COLUMN},
    {0x55, RELATION_ID_COLUMN},
    {0x55, OLD_KIND_COLUMN},
    {0x55, OLD_COLUMN},
    {0x55, NEW_COLUMN},
    {0x44, XID_COLUMN},
    {0x44, RELATION_ID_COLUMN},
    {0x44, OLD_KIND_COLUMN},
    {0x44, OLD_COLUMN},
    {0x54, XID_COLUMN},
    {0x54, OPTIONS_COLUMN},
    {0x54, RELATION_IDS_COLUMN},
    {0x53, XID_COLUMN},
    {0x53, FIRST_SEGMENT_COLUMN},
    {0x63, XID_COLUMN},
    {0x63, COMMIT_LSN_COLUMN},
    {0x63, END_LSN_COLUMN},
    {0x63, COMMIT_TIMESTAMP_COLUMN},
    {0x41, XID_COLUMN},
    {0x41, SUBXID_COLUMN},
    {0x62, PREPARE_LSN_COLUMN},
    {0x62, END_LSN_COLUMN},
    {0x62, PREPARE_TIMESTAMP_COLUMN},
    {0x62, XID_COLUMN},
    {0x62, GID_COLUMN},
    {0x50, PREPARE_LSN_COLUMN},
    {0x50, END_LSN_COLUMN},
    {0x50, PREPARE_TIMESTAMP_COLUMN},
    {0x50, XID_COLUMN},
    {0x50, GID_COLUMN},
    {0x4B, COMMIT_LSN_COLUMN},
    {0x4B, END_LSN_COLUMN},
    {0x4B, COMMIT_TIMESTAMP_COLUMN},
    {0x4B, XID_COLUMN},
    {0x4B, GID_COLUMN},
    {0x72, PREPARE_END_LSN_COLUMN},
    {0x72, ROLLBACK_END_LSN_COLUMN},
    {0x72, PREPARE_TIMESTAMP_COLUMN},
    {0x72, ROLLBACK_TIMESTAMP_COLUMN},
    {0x72, XID_COLUMN},
    {0x72, GID_COLUMN},
    {0x70, PREPARE_LSN_COLUMN},
    {0x70, END_LSN_COLUMN},
    {0x70, PREPARE_TIMESTAMP_COLUMN},
    {0x70, XID_COLUMN},
    {0x70, GID_COLUMN},
};

_Static_assert(4 <= MOST_FIELDS, "columns has too many fields");
static const ItemsOf items_2[] = {
    {COLUMNS_COLUMN, items_column_1, 4, {1, 8, 4, 4}},
    {-1, NULL, 0, {0}},
};

static const Use uses_3[] = {
    {0x42, FINAL_LSN_COLUMN},
    {0x42, COMMIT_TIMESTAMP_COLUMN},
    {0x42, XID_COLUMN},
    {0x4D, XID_COLUMN},
    {0x4D, FLAGS_COLUMN},
    {0x4D, MESSAGE_LSN_COLUMN},
    {0x4D, PREFIX_COLUMN},
    {0x4D, CONTENT_COLUMN},
    {0x43, COMMIT_LSN_COLUMN},
    {0x43, END_LSN_COLUMN},
    {0x43, COMMIT_TIMESTAMP_COLUMN},
    {0x4F, ORIGIN_LSN_COLUMN},
    {0x4F, NAME_COLUMN},
    {0x52, XID_COLUMN},
    {0x52, RELATION_ID_COLUMN},
    {0x52, NAMESPACE_COLUMN},
    {0x52, NAME_COLUMN},
    {0x52, REPLICA_IDENTITY_COLUMN},
    {0x52, COLUMNS_COLUMN},
    {0x59, XID_COLUMN},
    {0x59, TYPE_ID_COLUMN},
    {0x59, NAMESPACE_COLUMN},
    {0x59, NAME_COLUMN},
    {0x49, XID_COLUMN},
    {0x49, RELATION_ID_COLUMN},
    {0x49, NEW_COLUMN},
    {0x55, XID_COLUMN},
    {0x55, RELATION_ID_COLUMN},
    {0x55, OLD_KIND_COLUMN},
    {0x55, OLD_COLUMN},
    {0x55, NEW_COLUMN},
    {0x44, XID_COLUMN},
    {0x44, RELATION_ID_COLUMN},
    {0x44, OLD_KIND_COLUMN},
    {0x44, OLD_COLUMN},
    {0x54, XID_COLUMN},
    {0x54, OPTIONS_COLUMN},
    {0x54, RELATION_IDS_COLUMN},
    {0x53, XID_COLUMN},
    {0x53, FIRST_SEGMENT_COLUMN},
    {0x63, XID_COLUMN},
    {0x63, COMMIT_LSN_COLUMN},
    {0x63, END_LSN_COLUMN},
    {0x63, COMMIT_TIMESTAMP_COLUMN},
    {0x41, XID_COLUMN},
    {0x41, SUBXID_COLUMN},
    {0x62, PREPARE_LSN_COLUMN},
    {0x62, END_LSN_COLUMN},
    {0x62, PREPARE_TIMESTAMP_COLUMN},
    {0x62, XID_COLUMN},
    {0x62, GID_COLUMN},
    {0x50, PREPARE_LSN_COLUMN},
    {0x50, END_LSN_COLUMN},
    {0x50, PREPARE_TIMESTAMP_COLUMN},
    {0x50, XID_COLUMN},
    {0x50, GID_COLUMN},
    {0x4B, COMMIT_LSN_COLUMN},
    {0x4B, END_LSN_COLUMN},
    {0x4B, COMMIT_TIMESTAMP_COLUMN},
    {0x4B, XID_COLUMN},
    {0x4B, GID_COLUMN},
    {0x72, PREPARE_END_LSN_COLUMN},
    {0x72, ROLLBACK_END_LSN_COLUMN},
    {0x72, PREPARE_TIMESTAMP_COLUMN},
    {0x72, ROLLBACK_TIMESTAMP_COLUMN},
    {0x72, XID_COLUMN},
    {0x72, GID_COLUMN},
    {0x70, PREPARE_LSN_COLUMN},
    {0x70, END_LSN_COLUMN},
    {0x70, PREPARE_TIMESTAMP_COLUMN},
    {0x70, XID_COLUMN},
    {0x70, GID_COLUMN},
};

_Static_assert(4 <= MOST_FIELDS, "columns has too many fields");
static const ItemsOf items_3[] = {
    {COLUMNS_COLUMN, items_column_1, 4, {1, 8, 4, 4}},
    {-1, NULL, 0, {0}},
};

static const Use uses_4[] = {
    {0x42, FINAL_LSN_COLUMN},
    {0x42, COMMIT_TIMESTAMP_COLUMN},
    {0x42, XID_COLUMN},
    {0x4D, XID_COLUMN},
    {0x4D, FLAGS_COLUMN},
    {0x4D, MESSAGE_LSN_COLUMN},
    {0x4D, PREFIX_COLUMN},
    {0x4D, CONTENT_COLUMN},
    {0x43, COMMIT_LSN_COLUMN},
    {0x43, END_LSN_COLUMN},
    {0x43, COMMIT_TIMESTAMP_COLUMN},
    {0x4F, ORIGIN_LSN_COLUMN},
    {0x4F, NAME_COLUMN},
    {0x52, XID_COLUMN},
    {0x52, RELATION_ID_COLUMN},
    {0x52, NAMESPACE_COLUMN},
    {0x52, NAME_COLUMN},
    {0x52, REPLICA_IDENTITY_COLUMN},
    {0x52, COLUMNS_COLUMN},
    {0x59, XID_COLUMN},
    {0x59, TYPE_ID_COLUMN},
    {0x59, NAMESPACE_COLUMN},
    {0x59, NAME_COLUMN},
    {0x49, XID_COLUMN},
    {0x49, RELATION_ID_COLUMN},
    {0x49, NEW_COLUMN},
    {0x55, XID_COLUMN},
    {0x55, RELATION_ID_COLUMN},
    {0x55, OLD_KIND_COLUMN},
    {0x55, OLD_COLUMN},
    {0x55, NEW_COLUMN},
    {0x44, XID_COLUMN},
    {0x44, RELATION_ID_COLUMN},
    {0x44, OLD_KIND_COLUMN},
    {0x44, OLD_COLUMN},
    {0x54, XID_COLUMN},
    {0x54, OPTIONS_COLUMN},
    {0x54, RELATION_IDS_COLUMN},
    {0x53, XID_COLUMN},
    {0x53, FIRST_SEGMENT_COLUMN},
    {0x63, XID_COLUMN},
    {0x63, COMMIT_LSN_COLUMN},
    {0x63, END_LSN_COLUMN},
    {0x63, COMMIT_TIMESTAMP_COLUMN},
    {0x41, XID_COLUMN},
    {0x41, SUBXID_COLUMN},
    {0x41, ABORT_LSN_COLUMN},
    {0x41, ABORT_TIMESTAMP_COLUMN},
    {0x62, PREPARE_LSN_COLUMN},
    {0x62, END_LSN_COLUMN},
    {0x62, PREPARE_TIMESTAMP_COLUMN},
    {0x62, XID_COLUMN},
    {0x62, GID_COLUMN},
    {0x50, PREPARE_LSN_COLUMN},
    {0x50, END_LSN_COLUMN},
    {0x50, PREPARE_TIMESTAMP_COLUMN},
    {0x50, XID_COLUMN},
    {0x50, GID_COLUMN},
    {0x4B, COMMIT_LSN_COLUMN},
    {0x4B, END_LSN_COLUMN},
    {0x4B, COMMIT_TIMESTAMP_COLUMN},
    {0x4B, XID_COLUMN},
    {0x4B, GID_COLUMN},
    {0x72, PREPARE_END_LSN_COLUMN},
    {0x72, ROLLBACK_END_LSN_COLUMN},
    {0x72, PREPARE_TIMESTAMP_COLUMN},
    {0x72, ROLLBACK_TIMESTAMP_COLUMN},
    {0x72, XID_COLUMN},
    {0x72, GID_COLUMN},
    {0x70, PREPARE_LSN_COLUMN},
    {0x70, END_LSN_COLUMN},
    {0x70, PREPARE_TIMESTAMP_COLUMN},
    {0x70, XID_COLUMN},
    {0x70, GID_COLUMN},
};

_Static_assert(4 <= MOST_FIELDS, "columns has too many fields");
static const ItemsOf items_4[] = {
    {COLUMNS_COLUMN, items_column_1, 4, {1, 8, 4, 4}},
    {-1, NULL, 0, {0}},
};

const Version versions[] = {
    {"3dc7c3e2cfb39fea", walk_version_1, forms, 31, uses_1, sizeof(uses_1) / sizeof(Use), items_1},
    {"f55c7a4ffee9ad9a", walk_version_2, forms, 31, uses_2, sizeof(uses_2) / sizeof(Use), items_2},
    {"9e9f3e59bec7f480", walk_version_3, forms, 31, uses_3, sizeof(uses_3) / sizeof(Use), items_3},
    {"d6550b95832015fc", walk_version_4, forms, 31, uses_4, sizeof(uses_4) / sizeof(Use), items_4},
};
const int version_count = 4;
