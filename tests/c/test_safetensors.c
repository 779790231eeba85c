/* safetensors: what is written is read again, and no malformed file gets past the header. */
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"
#include "io/json_scan.h"
#include "taimatsu/io.h"

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int set_up(void **state)
{
    strcpy(folder, "/tmp/tm_test_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* A file in memory: header text and `data_bytes` bytes 0, 1, 2 ... */
typedef struct image {
    size_t n;
    unsigned char bytes[1024];
} image;

static image image_of(const char *header, size_t data_bytes)
{
    image im = {0};
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++) im.bytes[i] = (unsigned char)(n >> (8 * i));
    memcpy(im.bytes + 8, header, n);
    for (size_t i = 0; i < data_bytes; i++) im.bytes[8 + n + i] = (unsigned char)i;
    im.n = 8 + n + data_bytes;
    return im;
}

static void expect_fault(const char *header, size_t data_bytes, const char *text)
{
    image im = image_of(header, data_bytes);
    assert_null(tm_safetensors_open_memory(im.bytes, im.n, NULL, NULL));
    assert_error(TM_FORMAT, text);
}

static void test_round_trip(void **state)
{
    float values[6] = {1, -2, 3.5f, 4, 5, 6};
    int64_t ids[2] = {7, -8};
    unsigned char flag = 1;
    tm_tensor *w = make_f32(values, SIZES(2, 3)), *i = tm_tensor_from_data(SIZES(2), TM_I64, ids);
    tm_tensor *b = tm_tensor_from_data(0, NULL, TM_BOOL, &flag), *e = tm_tensor_empty(SIZES(0, 4), TM_F16);
    const char *names[] = {"w", "i", "a \"quoted\"\n\\ name \xc3\xa9", "empty"}, *keys[] = {"format"}, *meta[] = {"pt"};
    tm_tensor *all[] = {w, i, b, e};
    assert_ok(tm_safetensors_save(path_of("a.safetensors"), 4, names, all, 1, keys, meta));

    tm_safetensors *f = tm_safetensors_open(path_of("a.safetensors"));
    assert_made(f);
    assert_int_equal(tm_safetensors_len(f), 4);
    assert_string_equal(tm_safetensors_name(f, 0), "i");   /* widest elements first */
    assert_string_equal(tm_safetensors_metadata(f, "format"), "pt");
    assert_int_equal(tm_safetensors_metadata_len(f), 1);
    assert_string_equal(tm_safetensors_metadata_key(f, 0), "format");
    tm_tensor *r = tm_safetensors_get(f, "w"), *rb = tm_safetensors_get(f, names[2]), *re = tm_safetensors_get(f, "empty");
    tm_tensor *ri = tm_safetensors_get(f, "i");
    assert_null(tm_safetensors_get(f, "absent"));
    assert_error(TM_NOT_FOUND, "absent");
    tm_safetensors_close(f);   /* tensors keep the map */
    assert_f32(r, values, 6, 0);
    assert_int_equal(tm_tensor_size(r, 1), 3);
    assert_int_equal(((int64_t *)tm_tensor_data(ri))[1], -8);
    assert_int_equal(*(unsigned char *)tm_tensor_data(rb), 1);
    assert_int_equal(tm_tensor_ndim(rb), 0);
    assert_int_equal(tm_tensor_size(re, 1), 4);
    ((float *)tm_tensor_data(r))[0] = 99;   /* a private map: the file keeps its value */
    tm_release(r);
    f = tm_safetensors_open(path_of("a.safetensors"));
    r = tm_safetensors_get(f, "w");
    assert_f32(r, values, 6, 0);
    tm_safetensors_close(f);
    tm_tensor *made[] = {w, i, b, e, r, rb, re, ri};
    for (int k = 0; k < 8; k++) tm_release(made[k]);
}

static void test_strided_is_packed(void **state)
{
    float values[6] = {1, 2, 3, 4, 5, 6}, transposed[6] = {1, 4, 2, 5, 3, 6};
    int64_t sizes[2] = {3, 2}, strides[2] = {1, 3};
    tm_tensor *t = tm_tensor_wrap(2, sizes, strides, TM_F32, values, NULL, NULL);
    const char *names[] = {"t"};
    assert_ok(tm_safetensors_save(path_of("t.safetensors"), 1, names, &t, 0, NULL, NULL));
    tm_safetensors *f = tm_safetensors_open(path_of("t.safetensors"));
    assert_made(f);
    tm_tensor *r = tm_safetensors_get(f, "t");
    assert_f32(r, transposed, 6, 0);
    tm_release(r);
    tm_release(t);
    tm_safetensors_close(f);
}

static void test_header_faults(void **state)
{
    unsigned char few[8] = {0};
    assert_null(tm_safetensors_open_memory(few, 7, NULL, NULL));
    assert_error(TM_FORMAT, "Error while deserializing header: header too small");
    image im = image_of("{}", 0);
    im.bytes[7] = 0x7f;
    assert_null(tm_safetensors_open_memory(im.bytes, im.n, NULL, NULL));
    assert_error(TM_FORMAT, "header too large");
    im = image_of("{}", 0);
    im.bytes[0] = 3;
    assert_null(tm_safetensors_open_memory(im.bytes, im.n, NULL, NULL));
    assert_error(TM_FORMAT, "invalid header length");
    assert_null(tm_safetensors_open(path_of("nope.safetensors")));
    assert_error(TM_NOT_FOUND, "No such file or directory");
    assert_null(tm_safetensors_open(folder));
    assert_error(TM_IO, "not a regular file");
}

static void test_json_faults(void **state)
{
    static const char *const bad[] = {
        "", "[", "[]", "{", "{} x", "null", "{\"a\":}", "{\"a\":1}", "{\"a\":[]}", "{,}", "{\"a\"}", "{\"a\":{}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1e0],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"\\ud800\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"\\q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"__metadata__\":{\"a\":1}}", "{\"__metadata__\":[]}", "{\"__metadata__\":{\"a\":\"b\"},\"__metadata__\":{\"a\":\"b\"}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) expect_fault(bad[i], 4, "Error while deserializing header: invalid JSON in header: ");
    expect_fault("{\"\xff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "invalid UTF-8 in header");
    expect_fault("{\"\xc0\x80\":1}", 0, "invalid UTF-8 in header");
    char deep[800] = "{\"a\":{\"x\":";
    memset(deep + strlen(deep), '[', 700);
    expect_fault(deep, 0, "nested too deeply");
}

#define F32_AT(name, begin, end) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" #begin "," #end "]}"

static void test_layout_faults(void **state)
{
    expect_fault("{" F32_AT("a", 0, 4) "," F32_AT("b", 8, 12) "}", 12, "invalid offset for tensor `b`");       /* a hole */
    expect_fault("{" F32_AT("a", 0, 4) "," F32_AT("b", 2, 6) "}", 6, "invalid offset for tensor `b`");         /* an overlap */
    expect_fault("{" F32_AT("a", 4, 8) "}", 8, "invalid offset for tensor `a`");
    expect_fault("{" F32_AT("a", 4, 0) "}", 4, "invalid offset for tensor `a`");
    expect_fault("{" F32_AT("a", 0, 3) "}", 3, "invalid shape, data type, or offset for tensor");
    expect_fault("{" F32_AT("a", 0, 4) "}", 3, "incomplete metadata, file not fully covered");               /* truncated */
    expect_fault("{" F32_AT("a", 0, 4) "}", 5, "incomplete metadata, file not fully covered");               /* trailing bytes */
    expect_fault("{}", 1, "incomplete metadata, file not fully covered");
    expect_fault("{" F32_AT("a", 0, 18446744073709551615) "}", 4, "invalid shape, data type, or offset for tensor");
    expect_fault("{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "overflow computing buffer size");
    expect_fault("{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808],\"data_offsets\":[0,0]}}", 0, "overflow computing buffer size");
    expect_fault("{\"a\":{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "byte boundary");
}

static void test_accepted(void **state)
{
    static const char *const good[] = {
        "  { \"a\" : { \"data_offsets\" : [ 0 , 4 ] , \"shape\":[ 1 ],\n\"dtype\":\"\\u004632\" } }   ",
        "{" F32_AT("a", 0, 4) "," F32_AT("a", 0, 4) "}",                      /* twice the same */
        "{\"__metadata__\":null," F32_AT("a", 0, 4) "}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":[{\"x\":-1.5e3}, true, null, \"\\ud83d\\ude00\"]}}",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        image im = image_of(good[i], 4);
        tm_safetensors *f = tm_safetensors_open_memory(im.bytes, im.n, NULL, NULL);
        assert_made(f);
        assert_int_equal(tm_safetensors_len(f), 1);
        tm_tensor *t = tm_safetensors_get(f, "a");
        assert_made(t);
        uint32_t bits;
        memcpy(&bits, tm_tensor_data(t), 4);
        assert_int_equal(bits, 0x03020100);
        assert_int_equal((uintptr_t)tm_tensor_data(t) % 4, 0);   /* copied where the file has it at an odd address */
        tm_release(t);
        tm_safetensors_close(f);
    }
    image im = image_of("{\"x\":{\"dtype\":\"F8_E8M0\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
    tm_safetensors *f = tm_safetensors_open_memory(im.bytes, im.n, NULL, NULL);
    assert_made(f);
    assert_null(tm_safetensors_get(f, "x"));
    assert_error(TM_NOT_IMPLEMENTED, "Dtype not understood: F8_E8M0");
    tm_safetensors_close(f);
}

/* Every prefix of a good file, and every one-byte change of its header, either opens or is refused with TM_FORMAT; nothing else happens. */
static void test_damaged_files(void **state)
{
    image good = image_of("{\"__metadata__\":{\"k\":\"v\"}," F32_AT("a", 0, 4) "," F32_AT("b", 4, 8) "}", 8);
    for (size_t n = 0; n < good.n; n++) {
        char *copy = malloc(n ? n : 1);   /* of exactly this size: a sanitizer sees any read past the end */
        memcpy(copy, good.bytes, n);
        assert_null(tm_safetensors_open_memory(copy, n, NULL, NULL));
        assert_int_equal(tm_error_status(), TM_FORMAT);
        tm_error_clear();
        free(copy);
    }
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        image im = good;
        for (int k = 0; k <= round % 3; k++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            im.bytes[random % (good.n - 8)] = (unsigned char)(random >> 40);
        }
        tm_safetensors *f = tm_safetensors_open_memory(im.bytes, im.n, NULL, NULL);
        if (!f) assert_int_equal(tm_error_status(), TM_FORMAT);
        tm_error_clear();
        for (int64_t i = 0; f && i < tm_safetensors_len(f); i++) {
            tm_tensor *t = tm_safetensors_get(f, tm_safetensors_name(f, i));
            if (t) assert_true(tm_tensor_numel(t) * (int64_t)tm_dtype_size(tm_tensor_dtype(t)) <= 8);
            tm_release(t);
            tm_error_clear();
        }
        tm_safetensors_close(f);
    }
}

static void test_refused_writes(void **state)
{
    float x[2] = {1, 2};
    tm_tensor *t = make_f32(x, SIZES(2)), *two[] = {t, t};
    const char *same[] = {"a", "a"}, *reserved[] = {"__metadata__"}, *latin[] = {"\xe9"}, *names[] = {"a"};
    const char *path = path_of("r.safetensors");
    assert_int_equal(tm_safetensors_save(path, 2, same, two, 0, NULL, NULL), TM_VALUE);
    assert_error(TM_VALUE, "two tensors are named `a`");
    tm_safetensors_save(path, 1, reserved, two, 0, NULL, NULL);
    assert_error(TM_VALUE, "cannot name a tensor");
    tm_safetensors_save(path, 1, latin, two, 0, NULL, NULL);
    assert_error(TM_VALUE, "UTF-8");
    tm_tensor *wide = tm_tensor_empty(SIZES(1), TM_C128);
    tm_safetensors_save(path, 1, names, &wide, 0, NULL, NULL);
    assert_error(TM_VALUE, "complex128");
    assert_int_not_equal(access(path, F_OK), 0);   /* nothing was written */
    tm_safetensors_save("/nonexistent/folder/x.safetensors", 1, names, two, 0, NULL, NULL);
    assert_error(TM_NOT_FOUND, "/nonexistent/folder");
    tm_release(wide);
    tm_release(t);
}

static void test_full_disk_keeps_the_old_file(void **state)
{
    float x[2] = {1, 2};
    tm_tensor *t = make_f32(x, SIZES(2));
    const char *names[] = {"a"};
    assert_ok(tm_safetensors_save(path_of("old.safetensors"), 1, names, &t, 0, NULL, NULL));
    tm_tensor *big = tm_tensor_empty(SIZES(1 << 20), TM_U8);
    struct rlimit old, small = {4096, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    tm_safetensors_save(path_of("old.safetensors"), 1, names, &big, 0, NULL, NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_error(TM_IO, "cannot write");
    tm_safetensors *f = tm_safetensors_open(path_of("old.safetensors"));
    assert_made(f);
    tm_tensor *r = tm_safetensors_get(f, "a");
    assert_f32(r, x, 2, 0);
    tm_release(r);
    tm_release(t);
    tm_release(big);
    tm_safetensors_close(f);
    char command[160];
    snprintf(command, sizeof command, "test -z \"$(ls %s | grep tmp)\"", folder);
    assert_int_equal(system(command), 0);   /* no leftovers */
}

static tm_status save_and_load(void *ctx)
{
    tm_tensor *t = ctx;
    const char *names[] = {"w"}, *keys[] = {"k"}, *values[] = {"v"};
    tm_status s = tm_safetensors_save(path_of("n.safetensors"), 1, names, &t, 1, keys, values);
    tm_safetensors *f = s == TM_OK ? tm_safetensors_open(path_of("n.safetensors")) : NULL;
    tm_tensor *r = f ? tm_safetensors_get(f, "w") : NULL;
    tm_release(r);
    tm_safetensors_close(f);
    return tm_error_status();
}

static void test_failed_allocations(void **state)
{
    float x[3] = {1, 2, 3};
    tm_tensor *t = make_f32(x, SIZES(3));
    assert_true(fail_each_allocation(save_and_load, t) > 5);
    tm_release(t);
}

static void test_utf8(void **state)
{
    assert_int_equal(tmi_utf8_valid("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10), 10);
    assert_int_equal(tmi_utf8_valid("ab\xc3", 3), 2);
    assert_int_equal(tmi_utf8_valid("\xed\xa0\x80", 3), 0);       /* a surrogate */
    assert_int_equal(tmi_utf8_valid("\xe0\x80\x80", 3), 0);       /* overlong */
    assert_int_equal(tmi_utf8_valid("\xf4\x90\x80\x80", 4), 0);   /* above U+10FFFF */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_strided_is_packed), cmocka_unit_test(test_header_faults),
        cmocka_unit_test(test_json_faults), cmocka_unit_test(test_layout_faults), cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_damaged_files), cmocka_unit_test(test_refused_writes), cmocka_unit_test(test_full_disk_keeps_the_old_file),
        cmocka_unit_test(test_failed_allocations), cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
