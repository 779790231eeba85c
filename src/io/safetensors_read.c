/* Reading safetensors. The whole header is checked before any tensor is handed out: types, shapes, and that the tensors' ranges follow each
 * other without hole or overlap and end where the file ends. The order of the checks, and so which fault is named, is the format's own. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/vec.h"
#include "files.h"
#include "json_scan.h"
#include "safetensors.h"
#include "taimatsu/io.h"

const tmi_st_type tmi_st_types[] = {
    {"BOOL", TM_BOOL, 8},        {"U8", TM_U8, 8},           {"I8", TM_I8, 8},
    {"I16", TM_I16, 16},         {"I32", TM_I32, 32},        {"I64", TM_I64, 64},
    {"F16", TM_F16, 16},         {"F32", TM_F32, 32},        {"F64", TM_F64, 64},
    {"BF16", TM_BF16, 16},       {"U16", TM_U16, 16},        {"U32", TM_U32, 32},
    {"U64", TM_U64, 64},         {"C64", TM_C64, 64},        {"F8_E4M3", TM_F8_E4M3FN, 8},
    {"F8_E5M2", TM_F8_E5M2, 8},  {"F4", TM_DTYPE_COUNT, 4},  {"F6_E2M3", TM_DTYPE_COUNT, 6},
    {"F6_E3M2", TM_DTYPE_COUNT, 6}, {"F8_E8M0", TM_DTYPE_COUNT, 8}, {"F8_E4M3FNUZ", TM_DTYPE_COUNT, 8},
    {"F8_E5M2FNUZ", TM_DTYPE_COUNT, 8}, {NULL, 0, 0},
};

const tmi_st_type *tmi_st_type_named(const char *name)
{
    for (const tmi_st_type *t = tmi_st_types; t->name; t++)
        if (!strcmp(t->name, name)) return t;
    return NULL;
}

const tmi_st_type *tmi_st_type_of(tm_dtype dtype)
{
    for (const tmi_st_type *t = tmi_st_types; t->name; t++)
        if (t->dtype == dtype) return t;
    return NULL;
}

typedef struct entry {
    char *name;
    const tmi_st_type *type;
    int ndim;
    int64_t sizes[TMI_MAX_DIMS];
    uint64_t begin, end;   /* in the data buffer */
    int64_t order;         /* in the header */
} entry;

struct tm_safetensors {
    tmi_mapping *map;
    size_t data_start;
    TMI_VEC(entry *) entries;   /* by position in the file */
    TMI_VEC(char *) meta;       /* key, value, key, value ... */
    tmi_map by_name;
    char *path;                 /* for messages; NULL when opened from memory */
};

static void free_string(char *s)
{
    if (s) tmi_free(s, strlen(s) + 1);
}

static void entry_free(entry *e)
{
    free_string(e->name);
    tmi_free(e, sizeof *e);
}

void tm_safetensors_close(tm_safetensors *f)
{
    if (!f) return;
    for (int64_t i = 0; i < f->entries.len; i++) entry_free(f->entries.data[i]);
    for (int64_t i = 0; i < f->meta.len; i++) free_string(f->meta.data[i]);
    tmi_vec_free(&f->entries);
    tmi_vec_free(&f->meta);
    tmi_map_free(&f->by_name);
    free_string(f->path);
    tmi_mapping_release(f->map);
    tmi_free(f, sizeof *f);
}

#define BAD_HEADER "Error while deserializing header: "

/* ---- the JSON header */

static tm_status json_fault(const tmi_json *j, const char *what)
{
    if (tm_error_status() != TM_OK) return tm_error_status();   /* out of memory, most likely */
    return tmi_fail(TM_FORMAT, BAD_HEADER "invalid JSON in header: %s at byte %lld", j->fault ? j->fault : what, (long long)(j->p - j->begin));
}

static tm_status parse_shape(tmi_json *j, entry *e)
{
    bool first = true;
    e->ndim = 0;
    if (!tmi_json_take(j, '[')) return json_fault(j, NULL);
    while (tmi_json_next(j, ']', &first)) {
        uint64_t n;
        if (!tmi_json_unsigned(j, &n)) return json_fault(j, NULL);
        TMI_REQUIRE(e->ndim < TMI_MAX_DIMS, TM_FORMAT, BAD_HEADER "tensor `%s` has more than %d dimensions", e->name, TMI_MAX_DIMS);
        TMI_REQUIRE(n <= INT64_MAX, TM_FORMAT, BAD_HEADER "overflow computing buffer size from shape and/or element type");
        e->sizes[e->ndim++] = (int64_t)n;
    }
    return j->fault ? json_fault(j, NULL) : TM_OK;
}

static tm_status parse_offsets(tmi_json *j, entry *e)
{
    bool ok = tmi_json_take(j, '[') && tmi_json_unsigned(j, &e->begin) && tmi_json_take(j, ',') && tmi_json_unsigned(j, &e->end) &&
              tmi_json_take(j, ']');
    return ok ? TM_OK : json_fault(j, NULL);
}

static tm_status parse_type(tmi_json *j, entry *e)
{
    tmi_strbuf name = {0};
    tm_status s = tmi_json_string(j, &name) ? TM_OK : json_fault(j, NULL);
    if (s == TM_OK) {
        e->type = tmi_st_type_named(name.data);
        if (!e->type) s = tmi_fail(TM_FORMAT, BAD_HEADER "invalid JSON in header: unknown dtype `%.32s` of tensor `%s`", name.data, e->name);
    }
    tmi_str_free(&name);
    return s;
}

enum { SEEN_DTYPE = 1, SEEN_SHAPE = 2, SEEN_OFFSETS = 4 };

/* One field of a tensor's record; unknown ones are passed over. */
static tm_status parse_field(tmi_json *j, const char *field, entry *e, int *seen)
{
    int bit = !strcmp(field, "dtype") ? SEEN_DTYPE : !strcmp(field, "shape") ? SEEN_SHAPE : !strcmp(field, "data_offsets") ? SEEN_OFFSETS : 0;
    TMI_REQUIRE(!(*seen & bit), TM_FORMAT, BAD_HEADER "invalid JSON in header: duplicate field `%s` of tensor `%s`", field, e->name);
    *seen |= bit;
    if (bit == SEEN_DTYPE) return parse_type(j, e);
    if (bit == SEEN_SHAPE) return parse_shape(j, e);
    if (bit == SEEN_OFFSETS) return parse_offsets(j, e);
    return tmi_json_skip(j, 64) ? TM_OK : json_fault(j, NULL);
}

static tm_status parse_record(tmi_json *j, entry *e, tmi_strbuf *field)
{
    int seen = 0;
    bool first = true;
    if (!tmi_json_take(j, '{')) return json_fault(j, NULL);
    while (tmi_json_next(j, '}', &first)) {
        if (!tmi_json_string(j, field) || !tmi_json_take(j, ':')) return json_fault(j, NULL);
        TMI_TRY(parse_field(j, field->data, e, &seen));
    }
    if (j->fault) return json_fault(j, NULL);
    const char *missing = !(seen & SEEN_DTYPE) ? "dtype" : !(seen & SEEN_SHAPE) ? "shape" : !(seen & SEEN_OFFSETS) ? "data_offsets" : NULL;
    TMI_REQUIRE(!missing, TM_FORMAT, BAD_HEADER "invalid JSON in header: missing field `%s` of tensor `%s`", missing, e->name);
    return TM_OK;
}

static bool same_entry(const entry *a, const entry *b)
{
    return a->type == b->type && a->begin == b->begin && a->end == b->end && a->ndim == b->ndim &&
           !memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof *a->sizes);
}

/* Takes ownership of e. A name may come twice only with the same record. */
static tm_status add_entry(tm_safetensors *f, entry *e)
{
    void **place = tmi_map_put_str(&f->by_name, e->name);
    tm_status s = place ? TM_OK : TM_NOMEM;
    if (s == TM_OK && *place) {
        if (!same_entry(*place, e)) s = tmi_fail(TM_FORMAT, BAD_HEADER "invalid JSON in header: duplicate key `%s`", e->name);
        entry_free(e);
        return s;
    }
    if (s == TM_OK && tmi_vec_push(&f->entries, e)) {
        e->order = f->entries.len - 1;
        *place = e;
        return TM_OK;
    }
    entry_free(e);
    return TM_NOMEM;
}

static tm_status parse_tensor(tm_safetensors *f, tmi_json *j, const char *name, tmi_strbuf *field)
{
    entry *e = tmi_calloc(sizeof *e);
    if (!e) return TM_NOMEM;
    e->name = tmi_strdup(name);
    tm_status s = e->name ? parse_record(j, e, field) : TM_NOMEM;
    if (s == TM_OK) return add_entry(f, e);
    entry_free(e);
    return s;
}

static tm_status add_meta(tm_safetensors *f, const char *s)
{
    char *copy = tmi_strdup(s);
    if (copy && tmi_vec_push(&f->meta, copy)) return TM_OK;
    free_string(copy);
    return TM_NOMEM;
}

/* {"key": "text", ...}; nothing but text is allowed. */
static tm_status parse_metadata(tm_safetensors *f, tmi_json *j, tmi_strbuf *text)
{
    bool first = true;
    TMI_REQUIRE(f->meta.len == 0, TM_FORMAT, BAD_HEADER "invalid JSON in header: duplicate field `__metadata__`");
    if (tmi_json_peek(j) == 'n') return tmi_json_skip(j, 1) ? TM_OK : json_fault(j, NULL);
    if (!tmi_json_take(j, '{')) return json_fault(j, NULL);
    while (tmi_json_next(j, '}', &first)) {
        if (!tmi_json_string(j, text) || !tmi_json_take(j, ':')) return json_fault(j, NULL);
        TMI_TRY(add_meta(f, text->data));
        if (!tmi_json_string(j, text)) return json_fault(j, NULL);
        TMI_TRY(add_meta(f, text->data));
    }
    return j->fault ? json_fault(j, NULL) : TM_OK;
}

static tm_status parse_members(tm_safetensors *f, tmi_json *j, tmi_strbuf *name, tmi_strbuf *field)
{
    bool first = true;
    if (!tmi_json_take(j, '{')) return json_fault(j, NULL);
    while (tmi_json_next(j, '}', &first)) {
        if (!tmi_json_string(j, name) || !tmi_json_take(j, ':')) return json_fault(j, NULL);
        if (!strcmp(name->data, "__metadata__")) TMI_TRY(parse_metadata(f, j, field));
        else TMI_TRY(parse_tensor(f, j, name->data, field));
    }
    return tmi_json_done(j) ? TM_OK : json_fault(j, NULL);
}

static tm_status parse_header(tm_safetensors *f, const char *text, size_t n)
{
    size_t valid = tmi_utf8_valid(text, n);
    TMI_REQUIRE(valid == n, TM_FORMAT, BAD_HEADER "invalid UTF-8 in header: malformed sequence at byte %zu", valid);
    tmi_json j = tmi_json_open(text, n);
    tmi_strbuf name = {0}, field = {0};
    tm_status s = parse_members(f, &j, &name, &field);
    tmi_str_free(&name);
    tmi_str_free(&field);
    return s;
}

/* ---- what the header says against the file */

static int by_position(const void *a, const void *b)
{
    const entry *x = *(entry *const *)a, *y = *(entry *const *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static tm_status check_entry(const entry *e, uint64_t previous_end)
{
    TMI_REQUIRE(e->begin == previous_end && e->end >= e->begin, TM_FORMAT, BAD_HEADER "invalid offset for tensor `%s`", e->name);
    uint64_t bits = e->type->bits;
    for (int i = 0; i < e->ndim; i++)
        TMI_REQUIRE(!__builtin_mul_overflow(bits, (uint64_t)e->sizes[i], &bits), TM_FORMAT,
                    BAD_HEADER "overflow computing buffer size from shape and/or element type");
    TMI_REQUIRE(bits % 8 == 0, TM_FORMAT, BAD_HEADER "the slice is slicing for subbytes dtypes, and the slice does not end up at a byte boundary");
    TMI_REQUIRE(e->end - e->begin == bits / 8, TM_FORMAT, BAD_HEADER "invalid shape, data type, or offset for tensor");
    return TM_OK;
}

static tm_status check_layout(tm_safetensors *f)
{
    uint64_t end = 0;
    if (f->entries.len > 1) qsort(f->entries.data, (size_t)f->entries.len, sizeof *f->entries.data, by_position);
    for (int64_t i = 0; i < f->entries.len; i++) {
        TMI_TRY(check_entry(f->entries.data[i], end));
        end = f->entries.data[i]->end;
    }
    TMI_REQUIRE(end == f->map->nbytes - f->data_start, TM_FORMAT, BAD_HEADER "incomplete metadata, file not fully covered");
    return TM_OK;
}

static tm_status check_file(tm_safetensors *f)
{
    const unsigned char *bytes = (const unsigned char *)f->map->data;
    uint64_t n = 0;
    TMI_REQUIRE(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, TM_NOT_IMPLEMENTED, "safetensors files are read on little-endian machines only");
    TMI_REQUIRE(f->map->nbytes >= 8, TM_FORMAT, BAD_HEADER "header too small");
    for (int i = 7; i >= 0; i--) n = n << 8 | bytes[i];
    TMI_REQUIRE(n <= TMI_ST_MAX_HEADER, TM_FORMAT, BAD_HEADER "header too large");
    TMI_REQUIRE(n <= f->map->nbytes - 8, TM_FORMAT, BAD_HEADER "invalid header length");
    f->data_start = 8 + (size_t)n;
    TMI_TRY(parse_header(f, f->map->data + 8, (size_t)n));
    return check_layout(f);
}

/* Takes the mapping over; on failure it is given back. */
static tm_safetensors *open_mapping(tmi_mapping *map, const char *path)
{
    tm_safetensors *f = tmi_calloc(sizeof *f);
    if (!f) {
        tmi_mapping_release(map);
        return NULL;
    }
    f->map = map;
    if (path) f->path = tmi_strdup(path);
    if ((path && !f->path) || check_file(f) != TM_OK) {
        tm_safetensors_close(f);
        return NULL;
    }
    return f;
}

tm_safetensors *tm_safetensors_open(const char *path)
{
    tmi_mapping *map;
    if (tm_error_status() != TM_OK) return NULL;
    TMI_REQUIRE_PTR(path, TM_VALUE, "tm_safetensors_open: path is NULL");
    TMI_TRY_PTR(tmi_map_file(path, &map));
    return open_mapping(map, path);
}

tm_safetensors *tm_safetensors_open_memory(void *data, size_t nbytes, void (*deleter)(void *ctx), void *ctx)
{
    tmi_mapping *map;
    if (tm_error_status() != TM_OK) return NULL;
    TMI_REQUIRE_PTR(data || !nbytes, TM_VALUE, "tm_safetensors_open_memory: data is NULL");
    TMI_TRY_PTR(tmi_map_memory(data, nbytes, NULL, ctx, &map));   /* the deleter only counts once the file is good */
    tm_safetensors *f = open_mapping(map, NULL);
    if (f) map->deleter = deleter;
    return f;
}

/* ---- getters */

int64_t tm_safetensors_len(const tm_safetensors *f) { return f->entries.len; }

const char *tm_safetensors_name(const tm_safetensors *f, int64_t i)
{
    TMI_REQUIRE_PTR(i >= 0 && i < f->entries.len, TM_INDEX, "tensor %lld of %lld in a safetensors file", (long long)i, (long long)f->entries.len);
    return f->entries.data[i]->name;
}

int64_t tm_safetensors_metadata_len(const tm_safetensors *f) { return f->meta.len / 2; }

const char *tm_safetensors_metadata_key(const tm_safetensors *f, int64_t i)
{
    TMI_REQUIRE_PTR(i >= 0 && i < f->meta.len / 2, TM_INDEX, "metadata %lld of %lld in a safetensors file", (long long)i, (long long)f->meta.len / 2);
    return f->meta.data[2 * i];
}

const char *tm_safetensors_metadata(const tm_safetensors *f, const char *key)
{
    for (int64_t i = f->meta.len - 2; i >= 0; i -= 2)
        if (!strcmp(f->meta.data[i], key)) return f->meta.data[i + 1];
    return NULL;
}

/* Numbers at odd addresses (a header whose length is no multiple of 8) are copied: kernels may rely on an element's own alignment. */
static tm_storage *storage_of(const tm_safetensors *f, const entry *e)
{
    tm_device cpu = {TM_CPU, -1};
    size_t nbytes = (size_t)(e->end - e->begin);
    char *data = f->map->data + f->data_start + e->begin;
    if (nbytes == 0 || (uintptr_t)data % (e->type->bits / 8) != 0) {
        tm_storage *copy = tmi_storage_new(nbytes, cpu);
        if (copy && nbytes) memcpy(copy->data, data, nbytes);
        return copy;
    }
    tm_storage *s = tmi_storage_wrap(data, nbytes, cpu, tmi_mapping_release, tmi_mapping_retain(f->map));
    if (!s) tmi_mapping_release(f->map);
    else s->flags |= TMI_STORAGE_MAPPED;
    return s;
}

tm_tensor *tm_safetensors_get(const tm_safetensors *f, const char *name)
{
    if (tm_error_status() != TM_OK) return NULL;
    const entry *e = tmi_map_get_str(&f->by_name, name);
    TMI_REQUIRE_PTR(e, TM_NOT_FOUND, "File does not contain tensor %s", name);
    TMI_REQUIRE_PTR(e->type->dtype != TM_DTYPE_COUNT, TM_NOT_IMPLEMENTED, "Dtype not understood: %s", e->type->name);
    tm_storage *s = storage_of(f, e);
    if (!s) return NULL;
    tm_tensor *t = tmi_tensor_on(s, e->ndim, e->sizes, NULL, 0, (tm_dtype)e->type->dtype);
    tmi_storage_release(s);
    return tmi_own(t);
}
