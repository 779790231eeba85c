/* Writing safetensors: tensors by falling element size, then name, so that each lies aligned; the header is padded with spaces to 8 bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "files.h"
#include "json_scan.h"
#include "safetensors.h"
#include "taimatsu/io.h"

typedef struct item {
    const char *name;
    const tm_tensor *t;
    const tmi_st_type *type;
} item;

static int by_size_and_name(const void *a, const void *b)
{
    const item *x = a, *y = b;
    return x->type->bits != y->type->bits ? y->type->bits - x->type->bits : strcmp(x->name, y->name);
}

static tm_status check_text(const char *s, const char *what)
{
    TMI_REQUIRE(s, TM_VALUE, "tm_safetensors_save: a %s is NULL", what);
    TMI_REQUIRE(tmi_utf8_valid(s, strlen(s)) == strlen(s), TM_VALUE, "tm_safetensors_save: a %s is no valid UTF-8", what);
    return TM_OK;
}

static tm_status check_item(item *it)
{
    TMI_TRY(check_text(it->name, "name"));
    TMI_REQUIRE(strcmp(it->name, "__metadata__"), TM_VALUE, "tm_safetensors_save: `__metadata__` cannot name a tensor");
    TMI_REQUIRE(it->t, TM_VALUE, "tm_safetensors_save: tensor `%s` is NULL", it->name);
    TMI_REQUIRE(it->t->device.type == TM_CPU && it->t->layout == TM_STRIDED, TM_VALUE, "tm_safetensors_save: tensor `%s` has no data on the CPU", it->name);
    TMI_REQUIRE(!(it->t->flags & (TMI_CONJ | TMI_NEG)), TM_VALUE, "tm_safetensors_save: tensor `%s` is a lazy conjugate: resolve_conj it first", it->name);
    it->type = tmi_st_type_of((tm_dtype)it->t->dtype);
    TMI_REQUIRE(it->type, TM_VALUE, "tm_safetensors_save: the format has no type for %s (tensor `%s`)", tm_dtype_name((tm_dtype)it->t->dtype), it->name);
    return TM_OK;
}

static void header_metadata(tmi_strbuf *h, int64_t n, const char *const *keys, const char *const *values)
{
    tmi_str_add(h, "\"__metadata__\":{");
    for (int64_t i = 0; i < n; i++) {
        if (i) tmi_str_add(h, ",");
        tmi_json_quote(h, keys[i]);
        tmi_str_add(h, ":");
        tmi_json_quote(h, values[i]);
    }
    tmi_str_add(h, "}");
}

static int64_t nbytes_of(const item *it) { return it->t->numel * (it->type->bits / 8); }

static void header_item(tmi_strbuf *h, const item *it, int64_t at)
{
    tmi_json_quote(h, it->name);
    tmi_str_addf(h, ":{\"dtype\":\"%s\",\"shape\":[", it->type->name);
    for (int d = 0; d < it->t->ndim; d++) tmi_str_addf(h, d ? ",%lld" : "%lld", (long long)it->t->sizes[d]);
    tmi_str_addf(h, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)(at + nbytes_of(it)));
}

static tm_status write_header(tmi_writer *w, int64_t n, const item *items, int64_t n_meta, const char *const *keys, const char *const *values)
{
    tmi_strbuf h = {0};
    int64_t at = 0;
    tmi_str_add(&h, "        {");   /* the first 8 bytes become the length */
    if (n_meta) header_metadata(&h, n_meta, keys, values);
    for (int64_t i = 0; i < n; i++) {
        if (i || n_meta) tmi_str_add(&h, ",");
        header_item(&h, &items[i], at);
        at += nbytes_of(&items[i]);
    }
    tmi_str_add(&h, "}");
    while (h.len % 8 && !h.failed) tmi_str_add(&h, " ");
    tm_status s = h.failed ? TM_NOMEM : TM_OK;
    if (s == TM_OK && h.len - 8 > TMI_ST_MAX_HEADER) s = tmi_fail(TM_VALUE, "tm_safetensors_save: header too large");
    for (int i = 0; s == TM_OK && i < 8; i++) h.data[i] = (char)((h.len - 8) >> (8 * i));
    if (s == TM_OK) s = tmi_writer_put(w, h.data, h.len);
    tmi_str_free(&h);
    return s;
}

enum { PACK_BYTES = 1 << 16 };

/* Elements of a strided tensor in row-major order, through a buffer. */
static tm_status write_strided(tmi_writer *w, const tm_tensor *t, size_t size)
{
    char buffer[PACK_BYTES];
    size_t used = 0;
    int64_t index[TMI_MAX_DIMS] = {0}, at = 0;
    const char *data = tmi_data(t);
    for (int64_t i = 0; i < t->numel; i++) {
        memcpy(buffer + used, data + at * (int64_t)size, size);
        used += size;
        if (used + size > sizeof buffer) {
            TMI_TRY(tmi_writer_put(w, buffer, used));
            used = 0;
        }
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->strides[d];
            if (++index[d] < t->sizes[d]) break;
            at -= t->strides[d] * t->sizes[d];
            index[d] = 0;
        }
    }
    return tmi_writer_put(w, buffer, used);
}

static tm_status write_item(tmi_writer *w, const item *it)
{
    if (it->t->numel == 0) return TM_OK;
    if (tmi_contiguous(it->t)) return tmi_writer_put(w, tmi_data(it->t), (size_t)nbytes_of(it));
    return write_strided(w, it->t, it->type->bits / 8);
}

static tm_status write_file(const char *path, int64_t n, const item *items, int64_t n_meta, const char *const *keys, const char *const *values)
{
    tmi_writer w;
    TMI_TRY(tmi_writer_open(&w, path));
    tm_status s = write_header(&w, n, items, n_meta, keys, values);
    for (int64_t i = 0; s == TM_OK && i < n; i++) s = write_item(&w, &items[i]);
    if (s == TM_OK) return tmi_writer_commit(&w);
    tmi_writer_abandon(&w);
    return s;
}

static tm_status check_all(int64_t n, item *items, int64_t n_meta, const char *const *keys, const char *const *values)
{
    for (int64_t i = 0; i < n_meta; i++) {
        TMI_TRY(check_text(keys[i], "metadata key"));
        TMI_TRY(check_text(values[i], "metadata value"));
    }
    for (int64_t i = 0; i < n; i++) TMI_TRY(check_item(&items[i]));
    if (n > 1) qsort(items, (size_t)n, sizeof *items, by_size_and_name);
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i - 1; k >= 0 && !strcmp(items[k].name, items[i].name); k--)
            return tmi_fail(TM_VALUE, "tm_safetensors_save: two tensors are named `%s`", items[i].name);
    return TM_OK;
}

tm_status tm_safetensors_save(const char *path, int64_t n, const char *const *names, tm_tensor *const *tensors,
                              int64_t n_meta, const char *const *keys, const char *const *values)
{
    if (tm_error_status() != TM_OK) return tm_error_status();
    TMI_REQUIRE(path && n >= 0 && n_meta >= 0, TM_VALUE, "tm_safetensors_save: no path, or a negative count");
    item *items = tmi_calloc((size_t)n * sizeof *items);
    if (!items) return TM_NOMEM;
    for (int64_t i = 0; i < n; i++) items[i] = (item){names[i], tensors[i], NULL};
    tm_status s = check_all(n, items, n_meta, keys, values);
    if (s == TM_OK) s = write_file(path, n, items, n_meta, keys, values);
    tmi_free(items, (size_t)n * sizeof *items);
    return s;
}
