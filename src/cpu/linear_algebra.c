/* CPU kernels of the matrix product operators: they describe operands to tmi_gemm, add `self` in its epilogue, and do vectors. */
#include "op_bodies.h"

#include "base/alloc.h"
#include "base/pool.h"
#include "core/tensor_state.h"
#include "gemm/gemm.h"
#include "gemm/gemm_aux.h"

/* `self` of addmm and its kind, broadcast to the result. */
typedef struct addend {
    const char *data;
    tm_dtype dtype;
    int64_t rs, cs;   /* elements; 0 along broadcast dims */
    double beta;
} addend;

static double addend_at(const addend *s, int64_t i)
{
    switch (s->dtype) {
    case TM_F64: return ((const double *)(const void *)s->data)[i];
    case TM_F16: return tmi_f16_to_f32(((const tmi_f16 *)(const void *)s->data)[i]);
    case TM_BF16: return tmi_bf16_to_f32(((const tmi_bf16 *)(const void *)s->data)[i]);
    default: return ((const float *)(const void *)s->data)[i];
    }
}

static void add_rows_f32(const addend *s, float *tile, int64_t rs, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    float beta = (float)s->beta;
    for (int64_t i = 0; i < rows; i++) {
        const float *p = (const float *)(const void *)s->data + (row + i) * s->rs + col * s->cs;
        float *t = tile + i * rs;
        if (s->cs == 1)
            for (int64_t j = 0; j < cols; j++) t[j] += beta * p[j];
        else
            for (int64_t j = 0; j < cols; j++) t[j] += beta * p[j * s->cs];
    }
}

static void add_self(void *ctx, void *tile, int64_t rs, int64_t cs, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const addend *s = ctx;
    if (s->dtype == TM_F32 && cs == 1) {
        add_rows_f32(s, tile, rs, row, rows, col, cols);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            double x = s->beta * addend_at(s, (row + i) * s->rs + (col + j) * s->cs);
            if (s->dtype == TM_F64)
                ((double *)tile)[i * rs + j * cs] += x;
            else
                ((float *)tile)[i * rs + j * cs] += (float)x;
        }
}

static bool is_zero(tm_scalar s) { return s.tag == TM_SCALAR_C128 ? s.v.c.re == 0 && s.v.c.im == 0 : tmi_scalar_f64(s) == 0; }

/* Stride of dim `from the end` of t when t is broadcast. */
static int64_t broadcast_stride(const tm_tensor *t, int from_end)
{
    int i = t->ndim - from_end;
    return i < 0 || t->sizes[i] == 1 ? 0 : t->strides[i];
}

/* Element by element: for dtypes without an epilogue. */
static void copy_broadcast(const tmi_gemm *g, const tm_tensor *self, int64_t rs, int64_t cs, int64_t bs)
{
    size_t es = tmi_dtype_size(self->dtype);
    for (int64_t z = 0; z < (g->batch ? g->batch : 1); z++)
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++)
                memcpy((char *)g->c + (size_t)(z * g->c_bs + i * g->c_rs + j * g->c_cs) * es,
                       (const char *)tmi_data(self) + (z * bs + i * rs + j * cs) * (int64_t)es, es);
}

/* C = beta self + alpha A B for one matrix. `rs`, `cs` are self's strides along C's rows and columns. */
static tm_status run_added(tmi_gemm *g, const tm_tensor *self, int64_t rs, int64_t cs, tm_scalar beta, tm_scalar alpha)
{
    g->alpha = alpha;
    if (is_zero(beta)) return tmi_gemm_run(g);
    if (tmi_data(self) == g->c) {   /* in place: C holds self already */
        g->beta = beta;
        return tmi_gemm_run(g);
    }
    if (!tmi_is_float(g->dtype)) {
        copy_broadcast(g, self, rs, cs, 0);
        g->beta = beta;
        return tmi_gemm_run(g);
    }
    addend s = {.data = tmi_data(self), .dtype = g->dtype, .rs = rs, .cs = cs, .beta = tmi_scalar_f64(beta)};
    g->epilogue = add_self;
    g->epilogue_ctx = &s;
    return tmi_gemm_run(g);
}

static tm_status check_dtype(const tm_tensor *t, const char *kernel)
{
    bool fits = tmi_is_integral(t->dtype) ? t->dtype < TM_U16 : tmi_dtypes[t->dtype].category == 'C' || tmi_dtypes[t->dtype].category == 'F';
    TMI_REQUIRE(fits && t->dtype < TM_F8_E4M3FN, TM_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, tmi_dtypes[t->dtype].type_name);
    return TM_OK;
}

/* Operands of rank 2 (or the last two dims of rank 3). */
static tmi_gemm describe(tm_tensor *out, const tm_tensor *a, const tm_tensor *b)
{
    int d = a->ndim - 2;
    tmi_gemm g = tmi_gemm_init(a->dtype, a->sizes[d], b->sizes[d + 1], a->sizes[d + 1]);
    g.a = tmi_data(a), g.b = tmi_data(b), g.c = tmi_data(out);
    g.a_rs = a->strides[d], g.a_cs = a->strides[d + 1];
    g.b_rs = b->strides[d], g.b_cs = b->strides[d + 1];
    g.c_rs = out->strides[out->ndim - 2], g.c_cs = out->strides[out->ndim - 1];
    if (d == 1) g.batch = a->sizes[0], g.a_bs = a->strides[0], g.b_bs = b->strides[0];
    if (d == 1 && out->ndim == 3) g.c_bs = out->strides[0];
    return g;
}

tm_status tmk_mm(tm_tensor *out, tm_tensor *self, tm_tensor *mat2)
{
    TMI_TRY(check_dtype(self, "addmm_impl_cpu_"));
    tmi_gemm g = describe(out, self, mat2);
    return tmi_gemm_run(&g);
}

tm_status tmk_addmm(tm_tensor *out, tm_tensor *self, tm_tensor *mat1, tm_tensor *mat2, tm_scalar beta, tm_scalar alpha)
{
    TMI_TRY(check_dtype(mat1, "addmm_impl_cpu_"));
    tmi_gemm g = describe(out, mat1, mat2);
    return run_added(&g, self, broadcast_stride(self, 2), broadcast_stride(self, 1), beta, alpha);
}

tm_status tmk_bmm(tm_tensor *out, tm_tensor *self, tm_tensor *mat2)
{
    TMI_TRY(check_dtype(self, "bmm"));
    if (out->numel == 0) return TM_OK;
    tmi_gemm g = describe(out, self, mat2);
    return tmi_gemm_run(&g);
}

tm_status tmk_baddbmm(tm_tensor *out, tm_tensor *self, tm_tensor *batch1, tm_tensor *batch2, tm_scalar beta, tm_scalar alpha)
{
    TMI_TRY(check_dtype(batch1, "baddbmm"));
    if (out->numel == 0) return TM_OK;
    tmi_gemm g = describe(out, batch1, batch2);
    g.alpha = alpha;
    if (!is_zero(beta)) {
        if (tmi_data(self) != g.c) copy_broadcast(&g, self, broadcast_stride(self, 2), broadcast_stride(self, 1), broadcast_stride(self, 3));
        g.beta = beta;
    }
    return tmi_gemm_run(&g);
}

/* The batch is summed one product after the other. */
tm_status tmk_addbmm(tm_tensor *out, tm_tensor *self, tm_tensor *batch1, tm_tensor *batch2, tm_scalar beta, tm_scalar alpha)
{
    TMI_TRY(check_dtype(batch1, "addmm_impl_cpu_"));
    tmi_gemm g = describe(out, batch1, batch2);
    int64_t n = batch1->sizes[0], es = (int64_t)tmi_dtype_size(batch1->dtype);
    g.batch = 1;
    if (n == 0) g.k = 0;
    TMI_TRY(run_added(&g, self, broadcast_stride(self, 2), broadcast_stride(self, 1), beta, alpha));
    g.epilogue = NULL;
    g.beta = tm_i64(1);
    for (int64_t i = 1; i < n; i++) {
        g.a = (const char *)g.a + batch1->strides[0] * es;
        g.b = (const char *)g.b + batch2->strides[0] * es;
        TMI_TRY(tmi_gemm_run(&g));
    }
    return TM_OK;
}

static tmi_gemm describe_mv(tm_tensor *out, const tm_tensor *mat, const tm_tensor *vec)
{
    tmi_gemm g = tmi_gemm_init(mat->dtype, mat->sizes[0], 1, mat->sizes[1]);
    g.a = tmi_data(mat), g.b = tmi_data(vec), g.c = tmi_data(out);
    g.a_rs = mat->strides[0], g.a_cs = mat->strides[1];
    g.b_rs = vec->strides[0], g.b_cs = 1;
    g.c_rs = out->strides[0], g.c_cs = 1;
    return g;
}

tm_status tmk_mv(tm_tensor *out, tm_tensor *self, tm_tensor *vec)
{
    TMI_TRY(check_dtype(self, "addmv_impl_cpu"));
    tmi_gemm g = describe_mv(out, self, vec);
    return tmi_gemm_run(&g);
}

tm_status tmk_addmv(tm_tensor *out, tm_tensor *self, tm_tensor *mat, tm_tensor *vec, tm_scalar beta, tm_scalar alpha)
{
    TMI_TRY(check_dtype(mat, "addmv_impl_cpu"));
    tmi_gemm g = describe_mv(out, mat, vec);
    return run_added(&g, self, broadcast_stride(self, 1), 0, beta, alpha);
}

/* ---------------------------------------------------------------- dot */

/* Chunks of fixed length, one partial sum each, added in order: the same bits for any number of threads. */
enum { DOT_CHUNK = 8192 };

typedef struct dot_run {
    const char *a, *b;
    int64_t n, a_s, b_s, es;
    tm_dtype dtype;
    double *partial;
} dot_run;

static double dot_chunk(const dot_run *r, int64_t begin, int64_t n)
{
    const tmk_gemm_aux *x = tmi_gemm_aux();
    const char *a = r->a + begin * r->a_s * r->es, *b = r->b + begin * r->b_s * r->es;
    _Alignas(64) double pa[1024], pb[1024], total = 0;
    for (int64_t i = 0; i < n; i += 1024) {
        int64_t len = n - i < 1024 ? n - i : 1024;
        tmk_pack_fn *pack = r->dtype == TM_F64 ? x->pack_f64 : r->dtype == TM_F16 ? x->pack_f16 : r->dtype == TM_BF16 ? x->pack_bf16 : x->pack_f32;
        bool near = r->a_s == 1 && r->b_s == 1 && (r->dtype == TM_F32 || r->dtype == TM_F64);
        const void *u = near ? (const void *)(a + i * r->es) : pa, *v = near ? (const void *)(b + i * r->es) : pb;
        if (!near) {
            pack(pa, len, len, 1, a + i * r->a_s * r->es, r->a_s, 1);
            pack(pb, len, len, 1, b + i * r->b_s * r->es, r->b_s, 1);
        }
        double part = 0;
        float narrow = 0;
        if (r->dtype == TM_F64)
            x->dot_rows_f64(&part, 1, 1, len, u, len, v);
        else
            x->dot_rows_f32(&narrow, 1, 1, len, u, len, v);
        total += r->dtype == TM_F64 ? part : narrow;
    }
    return total;
}

static void dot_task(void *ctx, int64_t begin, int64_t end)
{
    const dot_run *r = ctx;
    for (int64_t c = begin; c < end; c++) {
        int64_t at = c * DOT_CHUNK;
        r->partial[c] = dot_chunk(r, at, r->n - at < DOT_CHUNK ? r->n - at : DOT_CHUNK);
    }
}

static tm_status dot_real(tm_tensor *out, const tm_tensor *a, const tm_tensor *b)
{
    dot_run r = {.a = tmi_data(a), .b = tmi_data(b), .n = a->numel, .a_s = a->strides[0], .b_s = b->strides[0],
                 .es = (int64_t)tmi_dtype_size(a->dtype), .dtype = a->dtype};
    int64_t chunks = (r.n + DOT_CHUNK - 1) / DOT_CHUNK;
    double few[64], total = 0;
    r.partial = chunks <= 64 ? few : tmi_alloc((size_t)chunks * sizeof(double));
    if (!r.partial) return TM_NOMEM;
    tmi_parallel_for(chunks, 4, dot_task, &r);
    for (int64_t i = 0; i < chunks; i++) total += r.partial[i];
    if (r.partial != few) tmi_free(r.partial, (size_t)chunks * sizeof(double));
    tmi_store_scalar(tmi_data(out), out->dtype, tm_f64(total));
    return TM_OK;
}

tm_status tmk_dot(tm_tensor *out, tm_tensor *self, tm_tensor *tensor)
{
    TMI_TRY(check_dtype(self, "dot"));
    if (tmi_is_float(self->dtype)) return dot_real(out, self, tensor);
    tmi_gemm g = tmi_gemm_init(self->dtype, 1, 1, self->numel);
    g.a = tmi_data(self), g.b = tmi_data(tensor), g.c = tmi_data(out);
    g.a_rs = g.b_cs = g.c_rs = g.c_cs = 1;
    g.a_cs = self->strides[0], g.b_rs = tensor->strides[0];
    return tmi_gemm_run(&g);
}
