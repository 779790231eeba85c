/* im2col and col2im as operators (torch.nn.functional.unfold and fold). */
#include "op_bodies.h"

#include "base/pool.h"
#include "core/tensor_state.h"

typedef struct patches {
    int64_t channels, h, w, k[2], d[2], p[2], s[2], blocks[2];
    tm_dtype dtype;
    const tm_tensor *image, *columns;
    int64_t planes;
} patches;

static int64_t at(const tm_int *list, int64_t n, int i) { return n == 1 ? list[0] : list[i]; }

static patches describe(const tm_tensor *image, const tm_tensor *columns, const tm_int *k, int64_t nk, const tm_int *d, int64_t nd, const tm_int *p, int64_t np,
                        const tm_int *s, int64_t ns)
{
    patches c = {.channels = image->sizes[image->ndim - 3], .h = image->sizes[image->ndim - 2], .w = image->sizes[image->ndim - 1], .dtype = image->dtype,
                 .image = image, .columns = columns};
    for (int i = 0; i < 2; i++) {
        c.k[i] = at(k, nk, i), c.d[i] = at(d, nd, i), c.p[i] = at(p, np, i), c.s[i] = at(s, ns, i);
        c.blocks[i] = ((i ? c.w : c.h) + 2 * c.p[i] - c.d[i] * (c.k[i] - 1) - 1) / c.s[i] + 1;
    }
    c.planes = c.channels * (image->ndim == 4 ? image->sizes[0] : 1);
    return c;
}

/* Element offsets of plane `plane` of the image, and of its row `tap` of columns. */
static int64_t image_at(const patches *c, int64_t plane)
{
    const tm_tensor *t = c->image;
    return (t->ndim == 4 ? plane / c->channels * t->strides[0] : 0) + plane % c->channels * t->strides[t->ndim - 3];
}
static int64_t column_at(const patches *c, int64_t plane, int64_t tap)
{
    const tm_tensor *t = c->columns;
    return (t->ndim == 3 ? plane / c->channels * t->strides[0] : 0) + (plane % c->channels * c->k[0] * c->k[1] + tap) * t->strides[t->ndim - 2];
}

/* Calls move(image element or NULL, column element) for everything of a plane. */
typedef void move_fn(void *image, void *column);

static void each(const patches *c, int64_t plane, move_fn *move)
{
    int64_t es = (int64_t)tmi_dtype_size(c->dtype), hs = c->image->strides[c->image->ndim - 2], ws = c->image->strides[c->image->ndim - 1];
    int64_t ls = c->columns->strides[c->columns->ndim - 1];
    char *image = (char *)tmi_data(c->image) + image_at(c, plane) * es;
    for (int64_t tap = 0; tap < c->k[0] * c->k[1]; tap++) {
        char *column = (char *)tmi_data(c->columns) + column_at(c, plane, tap) * es;
        for (int64_t by = 0; by < c->blocks[0]; by++)
            for (int64_t bx = 0; bx < c->blocks[1]; bx++, column += ls * es) {
                int64_t y = by * c->s[0] - c->p[0] + tap / c->k[1] * c->d[0], x = bx * c->s[1] - c->p[1] + tap % c->k[1] * c->d[1];
                bool inside = y >= 0 && y < c->h && x >= 0 && x < c->w;
                move(inside ? image + (y * hs + x * ws) * es : NULL, column);
            }
    }
}

static void take_1(void *i, void *c) { *(uint8_t *)c = i ? *(uint8_t *)i : 0; }
static void take_2(void *i, void *c) { *(uint16_t *)c = i ? *(uint16_t *)i : 0; }
static void take_4(void *i, void *c) { *(float *)c = i ? *(float *)i : 0; }
static void take_8(void *i, void *c) { *(uint64_t *)c = i ? *(uint64_t *)i : 0; }
static void take_16(void *i, void *c) { *(tmi_c128 *)c = i ? *(tmi_c128 *)i : 0; }
static void add_f32(void *i, void *c) { if (i) *(float *)i += *(float *)c; }
static void add_f64(void *i, void *c) { if (i) *(double *)i += *(double *)c; }
static void add_bf16(void *i, void *c) { if (i) *(tmi_bf16 *)i = tmi_f32_to_bf16(tmi_bf16_to_f32(*(tmi_bf16 *)i) + tmi_bf16_to_f32(*(tmi_bf16 *)c)); }
static void add_f16(void *i, void *c) { if (i) *(tmi_f16 *)i = tmi_f32_to_f16(tmi_f16_to_f32(*(tmi_f16 *)i) + tmi_f16_to_f32(*(tmi_f16 *)c)); }
static void add_bool(void *i, void *c) { if (i) *(uint8_t *)i |= *(uint8_t *)c; }
static void add_c64(void *i, void *c) { if (i) *(tmi_c64 *)i += *(tmi_c64 *)c; }
static void add_c128(void *i, void *c) { if (i) *(tmi_c128 *)i += *(tmi_c128 *)c; }

static move_fn *const adders[TM_DTYPE_COUNT] = {[TM_F32] = add_f32, [TM_F64] = add_f64, [TM_BF16] = add_bf16, [TM_F16] = add_f16, [TM_C64] = add_c64,
                                                [TM_C128] = add_c128, [TM_BOOL] = add_bool};

static void im2col_planes(void *ctx, int64_t begin, int64_t end)
{
    const patches *c = ctx;
    size_t es = tmi_dtype_size(c->dtype);
    for (int64_t p = begin; p < end; p++) each(c, p, es == 1 ? take_1 : es == 2 ? take_2 : es == 4 ? take_4 : es == 8 ? take_8 : take_16);
}

static void col2im_planes(void *ctx, int64_t begin, int64_t end)
{
    const patches *c = ctx;
    int64_t es = (int64_t)tmi_dtype_size(c->dtype), hs = c->image->strides[c->image->ndim - 2], ws = c->image->strides[c->image->ndim - 1];
    for (int64_t p = begin; p < end; p++) {
        char *image = (char *)tmi_data(c->image) + image_at(c, p) * es;
        for (int64_t y = 0; y < c->h; y++)
            for (int64_t x = 0; x < c->w; x++) memset(image + (y * hs + x * ws) * es, 0, (size_t)es);
        each(c, p, adders[c->dtype]);
    }
}

static int64_t grain(const patches *c) { return 1 + 8192 / (c->k[0] * c->k[1] * c->blocks[0] * c->blocks[1] + 1); }

tm_status tmk_im2col(tm_tensor *out, tm_tensor *self, const tm_int *k, int64_t nk, const tm_int *d, int64_t nd, const tm_int *p, int64_t np, const tm_int *s,
                     int64_t ns)
{
    TMI_REQUIRE(adders[self->dtype], TM_NOT_IMPLEMENTED, "\"im2col_out_cpu\" not implemented for '%s'", tmi_dtypes[self->dtype].type_name);
    patches c = describe(self, out, k, nk, d, nd, p, np, s, ns);
    if (out->numel) tmi_parallel_for(c.planes, grain(&c), im2col_planes, &c);
    return TM_OK;
}

tm_status tmk_col2im(tm_tensor *out, tm_tensor *self, const tm_int *size, int64_t n, const tm_int *k, int64_t nk, const tm_int *d, int64_t nd, const tm_int *p,
                     int64_t np, const tm_int *s, int64_t ns)
{
    TMI_REQUIRE(adders[self->dtype], TM_NOT_IMPLEMENTED, "\"col2im_out_cpu\" not implemented for '%s'", tmi_dtypes[self->dtype].type_name);
    patches c = describe(out, self, k, nk, d, nd, p, np, s, ns);
    if (out->numel) tmi_parallel_for(c.planes, grain(&c), col2im_planes, &c);
    return TM_OK;
}
