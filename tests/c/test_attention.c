/* Tiled attention and its gradients against the plain formulas in double: dtypes, odd lengths, causal, masks, grouped heads, strided inputs,
 * rows without any visible key, and the same bits for 1, 2, 3 and 7 threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/tensor_state.h"
#include "op_bodies.h"

static uint64_t state = 88172645463325252u;
static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static double real(void) { return (double)(draw() % 4001) / 1000.0 - 2.0; }

/* [b, h, s, d], rows before heads in memory when `swapped`. */
static tm_tensor *make(tm_dtype dtype, int64_t b, int64_t h, int64_t s, int64_t d, bool swapped)
{
    int64_t sizes[] = {b, h, s, d}, strides[] = {h * s * d, d, h * d, 1};
    tm_tensor *t = tmi_tensor_new(4, sizes, swapped ? strides : NULL, dtype, (tm_device){TM_CPU, -1});
    for (int64_t i = 0; i < t->numel; i++) tmi_store_scalar((char *)tmi_data(t) + (size_t)i * tmi_dtype_size(dtype), dtype, tm_f64(real()));
    return t;
}

static double at(const tm_tensor *t, int64_t b, int64_t h, int64_t s, int64_t d)
{
    int64_t i = b * t->strides[0] + h * t->strides[1] + s * t->strides[2] + (t->ndim > 3 ? d * t->strides[3] : 0);
    return tmi_scalar_f64(tmi_load_scalar((char *)tmi_data(t) + i * (int64_t)tmi_dtype_size(t->dtype), t->dtype));
}

typedef struct problem {
    tm_dtype dtype;
    int64_t b, hq, hk, sq, sk, d;
    bool causal, swapped;
    int mask;   /* 0 none, 1 bool, 2 float */
    tm_tensor *q, *k, *v, *m, *out, *lse, *dout, *dq, *dk, *dv;
    double scale;
} problem;

static void build(problem *p)
{
    p->q = make(p->dtype, p->b, p->hq, p->sq, p->d, p->swapped), p->k = make(p->dtype, p->b, p->hk, p->sk, p->d, p->swapped);
    p->v = make(p->dtype, p->b, p->hk, p->sk, p->d, p->swapped), p->dout = make(p->dtype, p->b, p->hq, p->sq, p->d, p->swapped);
    p->out = make(p->dtype, p->b, p->hq, p->sq, p->d, p->swapped), p->dq = make(p->dtype, p->b, p->hq, p->sq, p->d, p->swapped);
    p->dk = make(p->dtype, p->b, p->hk, p->sk, p->d, p->swapped), p->dv = make(p->dtype, p->b, p->hk, p->sk, p->d, p->swapped);
    p->lse = tmi_tensor_new(3, (int64_t[]){p->b, p->hq, p->sq}, NULL, p->dtype == TM_F64 ? TM_F64 : TM_F32, (tm_device){TM_CPU, -1});
    p->m = NULL;
    if (p->mask) p->m = make(p->mask == 1 ? TM_BOOL : p->dtype == TM_F64 ? TM_F64 : TM_F32, 1, p->hq, p->sq, p->sk, false);
    if (p->mask == 1) {
        uint8_t *x = tmi_data(p->m);
        for (int64_t i = 0; i < p->m->numel; i++) x[i] = draw() % 3 != 0;
        for (int64_t i = 0; i < p->sk; i++) x[i] = 0;   /* head 0, row 0 sees nothing */
    }
}

static void drop(problem *p)
{
    tm_tensor *all[] = {p->q, p->k, p->v, p->m, p->out, p->lse, p->dout, p->dq, p->dk, p->dv};
    for (int i = 0; i < 10; i++)
        if (all[i]) tm_release(all[i]);
}

static void run(problem *p)
{
    const double *scale = p->scale != 0 ? &p->scale : NULL;
    assert_int_equal(tmk_flash_attention(p->out, p->lse, p->q, p->k, p->v, 0, p->causal, p->m, scale), TM_OK);
    assert_int_equal(tmk_flash_attention_backward(p->dq, p->dk, p->dv, p->dout, p->q, p->k, p->v, p->out, p->lse, 0, p->causal, p->m, scale), TM_OK);
}

static double tolerance(tm_dtype d) { return d == TM_F64 ? 1e-12 : d == TM_F32 ? 3e-5 : d == TM_F16 ? 1e-2 : 6e-2; }

/* Weights of one query row. */
static void weights(const problem *p, int64_t b, int64_t h, int64_t i, double *w)
{
    double scale = p->scale != 0 ? p->scale : 1 / sqrt((double)p->d), max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < p->sk; j++) {
        double s = 0;
        for (int64_t c = 0; c < p->d; c++) s += at(p->q, b, h, i, c) * at(p->k, b, h / (p->hq / p->hk), j, c);
        s *= scale;
        if (p->mask == 1 && at(p->m, 0, h, i, j) == 0) s = -INFINITY;
        if (p->mask == 2) s += at(p->m, 0, h, i, j);
        if (p->causal && j > i) s = -INFINITY;
        w[j] = s;
        if (s > max) max = s;
    }
    for (int64_t j = 0; j < p->sk; j++) w[j] = max == -INFINITY ? 0 : exp(w[j] - max), sum += w[j];
    for (int64_t j = 0; j < p->sk && sum > 0; j++) w[j] /= sum;
}

static void near(double got, double want, double t, const char *what)
{
    if (!(fabs(got - want) <= t * (1 + fabs(want)))) fail_msg("%s: got %g, want %g", what, got, want);
}

static void check(problem *p)
{
    double t = tolerance(p->dtype), scale = p->scale != 0 ? p->scale : 1 / sqrt((double)p->d);
    size_t kv = (size_t)(p->b * p->hk * p->sk * p->d);
    double *w = malloc((size_t)p->sk * 8), *dk = calloc(kv, 8), *dv = calloc(kv, 8), *dq = malloc((size_t)p->d * 8);
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t h = 0; h < p->hq; h++)
            for (int64_t i = 0; i < p->sq; i++) {
                int64_t hk = h / (p->hq / p->hk), base = (b * p->hk + hk) * p->sk * p->d;
                double delta = 0;
                weights(p, b, h, i, w);
                for (int64_t c = 0; c < p->d; c++) {
                    double o = 0;
                    for (int64_t j = 0; j < p->sk; j++) o += w[j] * at(p->v, b, hk, j, c);
                    near(at(p->out, b, h, i, c), o, t, "out");
                    delta += o * at(p->dout, b, h, i, c);
                    dq[c] = 0;
                }
                for (int64_t j = 0; j < p->sk; j++) {
                    double dp = 0;
                    for (int64_t c = 0; c < p->d; c++) dp += at(p->dout, b, h, i, c) * at(p->v, b, hk, j, c);
                    double ds = w[j] * (dp - delta) * scale;
                    for (int64_t c = 0; c < p->d; c++) {
                        dq[c] += ds * at(p->k, b, hk, j, c);
                        dk[base + j * p->d + c] += ds * at(p->q, b, h, i, c);
                        dv[base + j * p->d + c] += w[j] * at(p->dout, b, h, i, c);
                    }
                }
                for (int64_t c = 0; c < p->d; c++) near(at(p->dq, b, h, i, c), dq[c], 4 * t, "dq");
            }
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t h = 0; h < p->hk; h++)
            for (int64_t j = 0; j < p->sk; j++)
                for (int64_t c = 0; c < p->d; c++) {
                    int64_t x = ((b * p->hk + h) * p->sk + j) * p->d + c;
                    near(at(p->dk, b, h, j, c), dk[x], 8 * t, "dk");
                    near(at(p->dv, b, h, j, c), dv[x], 8 * t, "dv");
                }
    free(w), free(dk), free(dv), free(dq);
}

static void test_values(void **s)
{
    (void)s;
    static const tm_dtype dtypes[] = {TM_F32, TM_F64, TM_BF16, TM_F16};
    static const int64_t lengths[][2] = {{1, 1}, {3, 5}, {97, 257}, {100, 30}, {1, 300}, {200, 1}, {193, 193}};
    int round = 0;
    for (int d = 0; d < 4; d++)
        for (int l = 0; l < 7; l++, round++) {
            problem p = {.dtype = dtypes[d], .b = 1 + round % 2, .hq = round % 3 ? 2 : 4, .hk = 2, .sq = lengths[l][0], .sk = lengths[l][1],
                         .d = round % 4 == 0 ? 16 : 5 + round, .causal = round % 3 == 1, .swapped = round % 2, .mask = round % 3 == 1 ? 0 : round % 4 % 3,
                         .scale = round % 5 ? 0 : 0.3};
            build(&p);
            run(&p);
            check(&p);
            drop(&p);
        }
}

static void test_threads(void **s)
{
    (void)s;
    static const int threads[] = {1, 2, 3, 7};
    int before = tm_num_threads();
    for (int heads = 1; heads <= 5; heads += 4) {   /* few heads go by blocks, many by heads */
        problem p = {.dtype = TM_F32, .b = 1, .hq = heads, .hk = heads, .sq = 300, .sk = 520, .d = 24};
        build(&p);
        size_t bytes = (size_t)p.dq->numel * 4, kv = (size_t)p.dk->numel * 4;
        char *first = malloc(2 * bytes + 2 * kv);
        for (int t = 0; t < 4; t++) {
            tm_set_num_threads(threads[t]);
            run(&p);
            if (t == 0) {
                memcpy(first, tmi_data(p.out), bytes), memcpy(first + bytes, tmi_data(p.dq), bytes);
                memcpy(first + 2 * bytes, tmi_data(p.dk), kv), memcpy(first + 2 * bytes + kv, tmi_data(p.dv), kv);
            }
            assert_memory_equal(first, tmi_data(p.out), bytes), assert_memory_equal(first + bytes, tmi_data(p.dq), bytes);
            assert_memory_equal(first + 2 * bytes, tmi_data(p.dk), kv), assert_memory_equal(first + 2 * bytes + kv, tmi_data(p.dv), kv);
        }
        check(&p);
        free(first);
        drop(&p);
    }
    tm_set_num_threads(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
