/* What the C tests share beyond cmocka: checks of status and error text, tensors from numbers, comparison, and "the N-th allocation fails". */
#ifndef TM_TEST_HARNESS_H
#define TM_TEST_HARNESS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "taimatsu/tensor.h"

/* The call succeeded and nothing is pending. */
#define assert_ok(expr)                                                                                               \
    do {                                                                                                              \
        tm_status status_ = (expr);                                                                                   \
        if (status_ != TM_OK || tm_error_status() != TM_OK) fail_msg("%s: %s: %s", #expr, tm_status_name(status_), tm_get_error()->message); \
    } while (0)
/* The call returned a pointer and nothing is pending. */
#define assert_made(ptr)                                                                                              \
    do {                                                                                                              \
        if (!(ptr) || tm_error_status() != TM_OK) fail_msg("%s: %s", #ptr, tm_get_error()->message);                   \
    } while (0)
/* The pending error has this status, and its message contains `text`; it is cleared. */
#define assert_error(wanted, text)                                                                                    \
    do {                                                                                                              \
        const tm_error *e_ = tm_get_error();                                                                          \
        if (e_->status != (wanted) || !strstr(e_->message, (text)))                                                   \
            fail_msg("wanted %s \"%s\", got %s \"%s\"", tm_status_name(wanted), text, tm_status_name(e_->status), e_->message); \
        tm_error_clear();                                                                                             \
    } while (0)

#define SIZES(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__}
/* A float32 tensor: make_f32((float[]){1, 2, 3, 4}, SIZES(2, 2)). */
static inline tm_tensor *make_f32(const float *values, int ndim, const int64_t *sizes)
{
    tm_tensor *t = tm_tensor_from_data(ndim, sizes, TM_F32, values);
    assert_made(t);
    return t;
}

/* A contiguous float32 tensor holds these n numbers within tol (absolute and relative). */
static inline void assert_f32(const tm_tensor *t, const float *values, int64_t n, double tol)
{
    assert_made(t);
    assert_int_equal(tm_tensor_dtype(t), TM_F32);
    assert_int_equal(tm_tensor_numel(t), n);
    assert_true(tm_tensor_is_contiguous(t));
    const float *data = tm_tensor_data(t);
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)data[i] - values[i]);
        if (!(d <= tol * (1 + fabs((double)values[i])))) fail_msg("element %lld: wanted %.9g, got %.9g", (long long)i, (double)values[i], (double)data[i]);
    }
}

/* Runs `body` again and again while the 1st, 2nd, 3rd ... allocation fails, until a run makes fewer. Each run must either succeed or fail with
 * TM_NOMEM, and must give back what it took. Returns the number of failing runs. */
static inline int64_t fail_each_allocation(tm_status (*body)(void *ctx), void *ctx)
{
    tm_memory_stats before, after;
    body(ctx);   /* whatever is made once and kept */
    tm_error_clear();
    for (int64_t n = 1;; n++) {
        tm_get_memory_stats(&before);
        int64_t count = tmi_alloc_count();
        tmi_alloc_fail_at(n, 0);
        tm_status s = body(ctx);
        tmi_alloc_fail_at(0, 0);
        int64_t calls = tmi_alloc_count() - count;
        if (s != TM_OK && s != TM_NOMEM) fail_msg("allocation %lld failed: %s: %s", (long long)n, tm_status_name(s), tm_get_error()->message);
        assert_int_equal(tm_error_status(), s);
        tm_error_clear();
        tm_get_memory_stats(&after);
        if (after.in_use != before.in_use) fail_msg("allocation %lld failed: %lld bytes leaked", (long long)n, (long long)(after.in_use - before.in_use));
        if (s == TM_OK && calls < n) return n - 1;
    }
}

#endif
