/* One floating-point matrix product, accumulated as T. Included with T, NAME, PACK_T (field of the helpers for T itself) defined. */

static T NAME(read)(const tmi_gemm_job *w, const char *p)
{
    if (!w->widen) return *(const T *)(const void *)p;
    float x;
    w->widen(&x, p, 1);
    return (T)x;
}

static void NAME(write_row)(const tmi_gemm_job *w, char *c, const T *row, int64_t n)
{
    if (w->narrow && w->c_cs == 1) {
        w->narrow(c, (const float *)(const void *)row, n);
    } else if (w->narrow) {
        for (int64_t x = 0; x < n; x++) w->narrow(c + x * w->c_cs * w->es, (const float *)(const void *)(row + x), 1);
    } else {
        for (int64_t x = 0; x < n; x++) ((T *)(void *)c)[x * w->c_cs] = row[x];
    }
}

static void NAME(epilogue)(const tmi_gemm_job *w, T *tile, int64_t ld, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
    if (!w->g->epilogue) return;
    if (w->exchanged)
        w->g->epilogue(w->g->epilogue_ctx, tile, 1, ld, j, cols, i, rows);
    else
        w->g->epilogue(w->g->epilogue_ctx, tile, ld, 1, i, rows, j, cols);
}

#include "gemm_block.tmpl.h"
#include "gemm_skinny.tmpl.h"

/* No product at all: C = beta C. */
static void NAME(no_product)(const tmi_gemm_job *w)
{
    T row[256];
    for (int64_t i = 0; i < w->m; i++)
        for (int64_t j = 0; j < w->n; j += 256) {
            int64_t cols = tmi_min(256, w->n - j);
            memset(row, 0, sizeof row);
            NAME(finish_tile)(w, row, 256, i, 1, j, cols);
        }
}

void NAME(matrix)(tmi_gemm_job *w, int64_t matrix)
{
    const tmi_gemm *g = w->g;
    const char *a = (const char *)g->a + matrix * g->a_bs * w->es, *b = (const char *)g->b + matrix * g->b_bs * w->es;
    w->matrix = matrix;
    w->a = w->exchanged ? b : a;
    w->b = w->exchanged ? a : b;
    w->c = (char *)g->c + matrix * g->c_bs * w->es;
    if (w->k == 0 || w->alpha == 0) {
        NAME(no_product)(w);
        return;
    }
    char *p = w->work;
    w->packed_a = p;
    if (w->way != TMI_GEMM_BLOCK) {
        NAME(skinny)(w);
        return;
    }
    p += w->pack_a ? w->mc * w->kc * (int64_t)sizeof(T) : 0;
    w->packed_b = p = (char *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
    p += tmi_ceil_div(w->pack_b ? w->nc : 1, 2 * w->u->lanes) * 2 * w->u->lanes * w->kc * (int64_t)sizeof(T);
    w->acc = w->direct ? w->c : p;
    w->ld = w->direct ? w->c_rs : w->n;
    NAME(block)(w);
}

#undef T
#undef NAME
