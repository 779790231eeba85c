/* Tensors, storages and scopes: shapes, views, versions, counts with wrappers, ownership, deleters, small floats, failed allocations. */
#include "core/tensor_state.h"

#include "harness.h"

#include <pthread.h>

static const tm_device cpu = {TM_CPU, -1}, meta = {TM_META, -1};

static int64_t in_use(void)
{
    tm_memory_stats s;
    tm_get_memory_stats(&s);
    return s.in_use;
}

/* ---- shapes */

static void test_sizes_checked(void **state)
{
    (void)state;
    assert_null(tm_tensor_empty(SIZES(-1), TM_F32));
    assert_error(TM_INVALID, "Trying to create tensor with negative dimension -1: [-1]");
    assert_null(tm_tensor_empty(SIZES(2, -1, 3), TM_F32));
    assert_error(TM_INVALID, "Trying to create tensor with negative dimension -1: [2, -1, 3]");
    assert_null(tm_tensor_empty(SIZES((int64_t)1 << 62), TM_F32));
    assert_error(TM_INVALID, "Storage size calculation overflowed with sizes=[4611686018427387904]");
    assert_null(tm_tensor_empty(SIZES((int64_t)1 << 62, 4, 0), TM_F32));
    assert_error(TM_INVALID, "Storage size calculation overflowed with sizes=[4611686018427387904, 4, 0]");
    assert_null(tm_tensor_empty(SIZES((int64_t)1 << 32, (int64_t)1 << 31), TM_I8));
    assert_error(TM_INVALID, "Storage size calculation overflowed");
    assert_null(tm_tensor_empty(SIZES((int64_t)1 << 60), TM_F32));
    assert_error(TM_NOMEM, "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4611686018427387904 bytes");
    assert_null(tmi_tensor_new(SIZES((int64_t)1 << 62), NULL, TM_F32, meta));
    assert_error(TM_INVALID, "Storage size calculation overflowed");
    const int64_t strides[] = {-1, 1};
    assert_null(tmi_tensor_new(SIZES(2, 3), strides, TM_F32, cpu));
    assert_error(TM_INVALID, "Storage size calculation overflowed with sizes=[2, 3] and strides=[-1, 1]");
    tm_tensor *t = tmi_tensor_new(SIZES((int64_t)1 << 40), NULL, TM_F32, meta);
    assert_made(t);
    assert_null(tm_tensor_data(t));
    tmi_release(t);
}

static void test_getters(void **state)
{
    (void)state;
    tm_tensor *t = tm_tensor_empty(SIZES(2, 0, 3), TM_F64);
    assert_int_equal(tm_tensor_ndim(t), 3);
    assert_int_equal(tm_tensor_numel(t), 0);
    assert_int_equal(tm_tensor_strides(t)[0], 3);
    assert_null(tm_tensor_data(t));
    assert_int_equal(tm_tensor_size(t, -1), 3);
    assert_int_equal(tm_tensor_size(t, 3), -1);
    assert_error(TM_INDEX, "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
    assert_true(tm_tensor_is_contiguous(t));
    tm_release(t);
    int64_t ones[64];
    for (int i = 0; i < 64; i++) ones[i] = 1;
    t = tm_tensor_empty(64, ones, TM_F32);
    assert_made(t);
    assert_int_equal(tm_tensor_ndim(t), 64);
    tm_release(t);
    assert_null(tm_tensor_empty(65, ones, TM_F32));
    assert_error(TM_INVALID, "at most 64 dimensions");
}

static void test_items(void **state)
{
    (void)state;
    tm_scalar s;
    tm_tensor *t = tm_tensor_scalar(tm_f64(2.5), TM_BF16);
    assert_ok(tm_tensor_item(t, &s));
    assert_true(s.tag == TM_SCALAR_F64 && s.v.f == 2.5);
    tm_release(t);
    t = tm_tensor_scalar(tm_c128(1, 2), TM_C64);
    t->flags |= TMI_CONJ;
    assert_ok(tm_tensor_item(t, &s));
    assert_true(s.v.c.re == 1 && s.v.c.im == -2);
    tm_release(t);
    t = tm_tensor_empty(SIZES(2, 3), TM_F32);
    assert_int_equal(tm_tensor_item(t, &s), TM_INVALID);
    assert_error(TM_INVALID, "a Tensor with 6 elements cannot be converted to Scalar");
    tm_release(t);
}

static void test_broadcast(void **state)
{
    (void)state;
    int64_t out[8];
    int n;
    assert_ok(tmi_broadcast_sizes(SIZES(2, 1, 3), SIZES(4, 1), &n, out));
    assert_true(n == 3 && out[0] == 2 && out[1] == 4 && out[2] == 3);
    assert_ok(tmi_broadcast_sizes(SIZES(0), SIZES(1), &n, out));
    assert_true(n == 1 && out[0] == 0);
    assert_int_equal(tmi_broadcast_sizes(SIZES(2, 3, 2), SIZES(3, 4, 2), &n, out), TM_SHAPE);
    assert_error(TM_SHAPE, "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
}

static void test_layout_questions(void **state)
{
    (void)state;
    const int64_t nhwc[] = {60, 1, 15, 3}, expanded[] = {0, 1}, apart[] = {8, 2};
    tm_tensor *a = tmi_tensor_new(SIZES(2, 3, 4, 5), nhwc, TM_F32, cpu);
    assert_true(tmi_is_contiguous_as(a, TM_CHANNELS_LAST) && !tmi_contiguous(a));
    assert_true(tmi_is_non_overlapping_and_dense(a) && !tmi_overlaps_itself(a));
    tm_tensor *b = tmi_tensor_new(SIZES(4, 3), expanded, TM_F32, cpu);
    assert_int_equal(b->storage->nbytes, 12);
    assert_true(tmi_overlaps_itself(b) && !tmi_is_non_overlapping_and_dense(b));
    tm_tensor *c = tmi_tensor_new(SIZES(2, 3), apart, TM_F32, cpu);
    assert_true(!tmi_overlaps_itself(c) && !tmi_is_non_overlapping_and_dense(c) && !tmi_contiguous(c));
    assert_int_equal(c->storage->nbytes, (8 + 4 + 1) * 4);
    tmi_release(a);
    tmi_release(b);
    tmi_release(c);
    char text[12];
    tmi_format_sizes(text, sizeof text, 0, NULL);
    assert_string_equal(text, "[]");
    tmi_format_sizes(text, sizeof text, SIZES(2, 3));
    assert_string_equal(text, "[2, 3]");
    tmi_format_sizes(text, sizeof text, SIZES(1000000, 1000000));   /* cut, but terminated */
    assert_int_equal(strlen(text), sizeof text - 1);
}

/* ---- views and versions */

static void test_views_share(void **state)
{
    (void)state;
    tm_tensor *a = make_f32((float[]){0, 1, 2, 3, 4, 5}, SIZES(2, 3));
    const int64_t sizes[] = {3, 2}, strides[] = {1, 3};
    tm_tensor *v = tmi_view_new(a, 2, sizes, strides, 0), *d = tmi_alias(v);
    assert_true(tmi_data(v) == tmi_data(a) && !tmi_contiguous(v));
    tmi_bump_version(v);
    assert_int_equal(tm_tensor_version(a), 1);
    assert_int_equal(tm_tensor_version(d), 1);
    assert_ok(tmi_tensor_own_version(d));
    tm_tensor *e = tmi_alias(d);
    tmi_bump_version(e);
    assert_int_equal(tm_tensor_version(d), 1);
    assert_int_equal(tm_tensor_version(a), 1);
    tm_release(a);
    tm_release(d);
    tmi_bump_version(e);
    assert_int_equal(tm_tensor_version(e), 2);
    assert_true(((float *)tm_tensor_data(v))[5] == 5);
    tm_release(v);
    tm_release(e);
}

static void test_restride(void **state)
{
    (void)state;
    int64_t many[12] = {2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    tm_tensor *t = make_f32((float[]){0, 1, 2, 3, 4, 5}, SIZES(2, 3));
    assert_ok(tmi_tensor_restride(t, 12, many, NULL, 0));
    assert_true(t->ndim == 12 && t->sizes[1] == 3 && t->strides[0] == 3 && tmi_contiguous(t));
    assert_ok(tmi_tensor_restride(t, t->ndim - 1, t->sizes + 1, t->strides + 1, 3));   /* from its own arrays */
    assert_true(t->ndim == 11 && t->sizes[0] == 3 && t->offset == 3);
    assert_ok(tmi_tensor_restride(t, 1, t->sizes, t->strides, 1));
    assert_true(t->ndim == 1 && t->sizes == t->inline_dims && t->numel == 3 && tmi_contiguous(t));
    tm_release(t);
}

static void test_storage_resize(void **state)
{
    (void)state;
    int64_t before = in_use();
    tm_tensor *t = make_f32((float[]){1, 2, 3, 4}, SIZES(4));
    for (size_t n = 20; n < 100000; n *= 3) {
        assert_ok(tmi_storage_resize(t->storage, n));
        assert_true(t->storage->nbytes == n && ((float *)tmi_data(t))[3] == 4);
        assert_int_equal((uintptr_t)t->storage->data % 64, 0);
        memset((char *)t->storage->data + 16, 1, n - 16);
    }
    assert_ok(tmi_storage_resize(t->storage, 16));
    assert_true(((float *)tmi_data(t))[3] == 4);
    assert_ok(tmi_storage_resize(t->storage, 0));
    assert_ok(tmi_storage_resize(t->storage, 1 << 20));
    tm_release(t);
    assert_int_equal(in_use(), before);
}

/* ---- counts and wrappers */

static int steps, freed;
static void note_step(tm_tensor *t, int step) { (void)t, steps = steps * 10 + (step > 0 ? 1 : 2); }
static void note_free(tm_tensor *t) { t->grad_meta = NULL, freed++; }

static void test_wrapper_counts(void **state)
{
    (void)state;
    tmi_core_hooks saved = tmi_hooks;
    tmi_hooks = (tmi_core_hooks){.pyobj_count = note_step, .free_grad_meta = note_free};
    tm_tensor *t = tm_tensor_scalar(tm_i64(1), TM_I64);
    steps = freed = 0;
    t->grad_meta = (struct tmi_grad_meta *)(void *)t;
    atomic_fetch_or(&t->refs, TMI_HAS_PYOBJECT);   /* the one reference is the wrapper's */
    tmi_retain(t);
    assert_int_equal(steps, 1);
    tmi_retain(t);
    tmi_release(t);
    assert_int_equal(steps, 1);
    assert_int_equal(tmi_ref_count(t), 2);
    tmi_release(t);
    assert_int_equal(steps, 12);
    atomic_fetch_and(&t->refs, ~TMI_HAS_PYOBJECT);
    tmi_release(t);
    assert_int_equal(steps, 12);
    assert_int_equal(freed, 1);
    tmi_hooks = saved;
}

static void *retain_and_release(void *t)
{
    for (int i = 0; i < 20000; i++) {
        tmi_retain(t);
        tm_tensor *v = tmi_alias(t);
        tmi_release(t);
        tmi_release(v);
    }
    return NULL;
}

static void test_counts_across_threads(void **state)
{
    (void)state;
    pthread_t th[3];
    int64_t before = in_use();
    tm_tensor *t = tm_tensor_scalar(tm_i64(1), TM_I64);
    for (int i = 0; i < 3; i++) pthread_create(&th[i], NULL, retain_and_release, t);
    for (int i = 0; i < 3; i++) pthread_join(th[i], NULL);
    assert_int_equal(tmi_ref_count(t), 1);
    assert_int_equal(tmi_ref_count((tm_tensor *)t) + atomic_load(&t->storage->refs), 2);
    tm_release(t);
    assert_int_equal(in_use(), before);
}

/* ---- scopes */

static void test_scope_frees(void **state)
{
    (void)state;
    int64_t before = in_use();
    tm_scope *s = tm_scope_open();
    for (int i = 0; i < 100; i++) assert_made(tm_tensor_empty(SIZES(i), TM_F32));
    tm_scope_close(s);
    tm_scope_close(NULL);
    tm_scope_close(s);   /* closed already: nothing happens */
    assert_int_equal(in_use(), before);
}

static tm_tensor *made_inside(void)
{
    tm_scope *s = tm_scope_open();
    tm_tensor *gone = tm_tensor_scalar(tm_i64(1), TM_I64), *t = tm_tensor_scalar(tm_i64(2), TM_I64);
    (void)gone;
    tm_keep(t);
    tm_scope_close(s);
    return t;
}

static void test_keep(void **state)
{
    (void)state;
    int64_t before = in_use();
    tm_tensor *t = made_inside();   /* to the caller */
    assert_int_equal(tmi_ref_count(t), 1);
    tm_release(t);
    tm_scope *outer = tm_scope_open();
    t = made_inside();              /* to the outer scope */
    assert_int_equal(tmi_ref_count(t), 1);
    tm_scope *inner = tm_scope_open();
    assert_ptr_equal(tm_keep(t), t);   /* not the innermost's: retained in the enclosing one */
    assert_int_equal(tmi_ref_count(t), 2);
    tm_scope_close(inner);
    assert_int_equal(tmi_ref_count(t), 2);
    tm_scope_close(outer);
    assert_int_equal(in_use(), before);
    assert_null(tm_keep(NULL));
}

static void test_release_and_retain_in_scope(void **state)
{
    (void)state;
    int64_t before = in_use();
    tm_scope *s = tm_scope_open();
    tm_tensor *a = tm_tensor_scalar(tm_i64(1), TM_I64), *b = tm_tensor_scalar(tm_i64(2), TM_I64), *c = tm_tensor_scalar(tm_i64(3), TM_I64);
    tm_release(a);                  /* out of the scope, gone */
    tm_retain(b);
    tm_release(b);                  /* the retained one: the scope still owns b */
    assert_int_equal(tmi_ref_count(b), 1);
    tm_retain(c);
    tm_scope *inner = tm_scope_open();
    tm_release(c);                  /* from an inner scope, too */
    tm_scope_close(inner);
    assert_int_equal(tmi_ref_count(c), 1);
    tm_retain(c);
    tm_scope_close(s);
    assert_int_equal(tmi_ref_count(c), 1);   /* survives: ours */
    tm_release(c);
    assert_int_equal(in_use(), before);
}

static void test_outer_close_closes_inner(void **state)
{
    (void)state;
    int64_t before = in_use();
    tm_scope *outer = tm_scope_open();
    for (int i = 0; i < 3; i++) {
        tm_scope_open();
        tm_tensor_scalar(tm_i64(1), TM_I64);
    }
    tm_scope_close(outer);
    assert_null(tmi_tls.scope);
    assert_int_equal(in_use(), before);
}

static void test_pending_error_makes_nothing(void **state)
{
    (void)state;
    tm_error_set(TM_VALUE, "pending");
    assert_null(tm_tensor_empty(SIZES(1), TM_F32));
    assert_null(tm_tensor_scalar(tm_i64(1), TM_I64));
    assert_error(TM_VALUE, "pending");
}

/* ---- borrowed data */

static tm_tensor *made_by_deleter;
static void deleter(void *ctx)
{
    int *calls = ctx;
    ++*calls;
    assert_int_equal(tm_error_status(), TM_OK);   /* runs with the record put aside ... */
    made_by_deleter = tm_tensor_scalar(tm_i64(1), TM_I64);   /* ... and outside every scope */
    tm_scope_open();                              /* left open: closed for it */
}

static void test_wrap(void **state)
{
    (void)state;
    float data[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const int64_t strides[] = {2};
    int calls = 0;
    tm_scope *s = tm_scope_open();
    tm_tensor *t = tm_tensor_wrap(SIZES(5), strides, TM_F32, data, deleter, &calls);
    assert_true(((float *)tm_tensor_data(t))[2] == 2 && t->storage->nbytes == 36);
    assert_int_equal(tmi_storage_resize(t->storage, 100), TM_INVALID);
    assert_error(TM_INVALID, "Trying to resize storage that is not resizable");
    tm_error_set(TM_VALUE, "pending");
    tm_scope_close(s);
    assert_int_equal(calls, 1);
    assert_error(TM_VALUE, "pending");
    assert_int_equal(tmi_ref_count(made_by_deleter), 1);
    tm_release(made_by_deleter);
    assert_null(tmi_tls.scope);
    assert_null(tm_tensor_wrap(SIZES(-5), NULL, TM_F32, data, deleter, &calls));
    tm_error_clear();
    assert_int_equal(calls, 1);   /* not on failure */
}

static tm_status make_many(void *ctx)
{
    (void)ctx;
    int64_t many[12] = {2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static float data[4];
    tm_scope *s = tm_scope_open();
    if (!s) return tm_error_status();
    for (int i = 0; i < 20; i++) tm_tensor_empty(12, many, TM_F32);
    tm_scope *inner = tm_scope_open();
    for (int i = 0; i < 20; i++) tm_keep(tm_tensor_empty(SIZES(700), TM_F32));
    tm_tensor_wrap(SIZES(4), NULL, TM_F32, data, NULL, NULL);
    tm_tensor *t = tm_tensor_scalar(tm_i64(4), TM_I64), *v = t ? tmi_alias(t) : NULL;
    if (v && tmi_tensor_own_version(v) == TM_OK) tmi_tensor_restride(v, 12, many, NULL, 0);
    if (t) tmi_storage_resize(t->storage, 5000);
    tmi_release(v);
    tm_scope_close(inner);
    tm_scope_close(s);
    return tm_error_status();
}

static void test_each_allocation_fails(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(make_many, NULL) > 80);
    assert_null(tmi_tls.scope);
}

/* ---- small floats */

static void test_f16(void **state)
{
    (void)state;
    for (uint32_t b = 0; b < 65536; b++) {   /* all of them survive the way out and back; NaNs become quiet */
        tmi_f16 h = {(uint16_t)b};
        bool nan = (b & 0x7fff) > 0x7c00;
        assert_int_equal(tmi_f32_to_f16(tmi_f16_to_f32(h)).bits, nan ? b | 0x200 : b);
    }
    const struct { float f; uint16_t bits; } rows[] = {{1, 0x3c00}, {-2, 0xc000}, {65504, 0x7bff}, {65519.99f, 0x7bff}, {65520, 0x7c00},
        {1e30f, 0x7c00}, {0x1p-24f, 1}, {0x1p-25f, 0}, {0x1.8p-25f, 1}, {0x1.8p-24f, 2}, {1.0f + 0x1p-11f, 0x3c00}, {1.0f + 0x1.8p-10f, 0x3c02},
        {-INFINITY, 0xfc00}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_int_equal(tmi_f32_to_f16(rows[i].f).bits, rows[i].bits);
}

static void test_f8(void **state)
{
    (void)state;
    for (int which = TM_F8_E4M3FN; which <= TM_F8_E5M2; which++)
        for (int b = 0; b < 256; b++) {
            float f = tmi_f8_to_f32((uint8_t)b, (tm_dtype)which);
            if (!isnan(f)) assert_int_equal(tmi_f32_to_f8(f, (tm_dtype)which), b);
            else assert_int_equal(tmi_f32_to_f8(f, (tm_dtype)which) & 0x7f, 0x7f);
        }
    assert_int_equal(tmi_f32_to_f8(1e6f, TM_F8_E4M3FN), 0x7e);        /* saturates at 448, infinities too */
    assert_int_equal(tmi_f32_to_f8(-INFINITY, TM_F8_E4M3FN), 0xfe);
    assert_int_equal(tmi_f32_to_f8(NAN, TM_F8_E4M3FN) & 0x7f, 0x7f);
    assert_int_equal(tmi_f32_to_f8(61440, TM_F8_E5M2), 0x7c);          /* overflows to infinity */
    assert_int_equal(tmi_f32_to_f8(61439, TM_F8_E5M2), 0x7b);
    assert_int_equal(tmi_f32_to_f8(0x1p-17f, TM_F8_E5M2), 0);          /* ties go to even */
}

static void test_casts(void **state)
{
    (void)state;
    const struct { double from; tm_dtype to; int64_t wanted; } rows[] = {
        {-1, TM_U8, 255}, {300, TM_U8, 44}, {NAN, TM_U8, 0}, {1e30, TM_I32, INT32_MIN}, {NAN, TM_I64, INT64_MIN}, {-1.9, TM_I8, -1},
        {70000, TM_I16, 70000 - 65536}, {3e9, TM_U32, 3000000000}, {0.3, TM_BOOL, 1}, {NAN, TM_BOOL, 1}, {-3e9, TM_U32, 0x80000000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t place = 0;
        tmi_store_scalar(&place, rows[i].to, tm_f64(rows[i].from));
        assert_true(tmi_scalar_i64(tmi_load_scalar(&place, rows[i].to)) == rows[i].wanted);
    }
    assert_int_equal(tmi_f32_to_bf16(1.0f + 0x1p-8f).bits, 0x3f80);
    assert_int_equal(tmi_f32_to_bf16(1.0f + 0x1.8p-7f).bits, 0x3f82);
    assert_int_equal(tmi_f32_to_bf16(NAN).bits, 0x7fc0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_checked), cmocka_unit_test(test_getters), cmocka_unit_test(test_items), cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_layout_questions), cmocka_unit_test(test_views_share), cmocka_unit_test(test_restride),
        cmocka_unit_test(test_storage_resize), cmocka_unit_test(test_wrapper_counts), cmocka_unit_test(test_counts_across_threads),
        cmocka_unit_test(test_scope_frees), cmocka_unit_test(test_keep), cmocka_unit_test(test_release_and_retain_in_scope),
        cmocka_unit_test(test_outer_close_closes_inner), cmocka_unit_test(test_pending_error_makes_nothing), cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_each_allocation_fails), cmocka_unit_test(test_f16), cmocka_unit_test(test_f8), cmocka_unit_test(test_casts)};
    return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
