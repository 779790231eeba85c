/* Loops over straight runs of f32 or f64, one per form of pointwise.def. The including file defines S (element type), V (vector), M (mask),
 * W (lanes) and F(x) (the vocabulary's name for this element type, v_x_f32). The operator comes in as a function that is always inlined.
 *
 * An input that is one repeated value is copied to a vector on the stack and its pointer does not advance, so each form has one loop.
 * The last n % W elements run through the same vector code, so a value never depends on where it stands. */

/* Where an input is read from, and in *step how many elements on per vector. Plain locals of the loop, so that they stay in registers. */
TMK_INLINE const S *open_operand(const char *p, int64_t bytes, S *fill, int64_t *step)
{
    *step = bytes ? W : 0;
    if (bytes) return (const S *)p;
    F(store)(fill, F(set)(*(const S *)p));
    return fill;
}
TMK_INLINE V last(const S *p, int64_t step, int n) { return step ? F(load_n)(p, n) : F(load)(p); }

TMK_INLINE void open_params(S *p, const tmk_params *params)
{
    for (int i = 0; i < TMK_MAX_PARAMS; i++) p[i] = params ? (S)params->p[i].f : 0;
}
TMK_INLINE void store_mask_n(uint8_t *y, M m, int n)
{
    uint8_t t[W];
    F(store_mask)(t, m);
    for (int i = 0; i < n; i++) y[i] = t[i];
}
TMK_INLINE M load_mask_n(const uint8_t *x, int n)
{
    uint8_t t[W] = {0};
    for (int i = 0; i < n; i++) t[i] = x[i];
    return F(load_mask)(t);
}

TMK_INLINE void loop_UNARY(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, V (*op)(V, const S *))
{
    S p[TMK_MAX_PARAMS], *y = (S *)data[0];
    S fa[W];
    int64_t da;
    open_params(p, params);
    const S *a = open_operand(data[1], steps[1], fa, &da);
    for (; n >= W; n -= W, y += W, a += da) F(store)(y, op(F(load)(a), p));
    if (n) F(store_n)(y, op(last(a, da, (int)n), p), (int)n);
}
TMK_INLINE void loop_BINARY(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, V (*op)(V, V, const S *))
{
    S p[TMK_MAX_PARAMS], *y = (S *)data[0];
    S fa[W], fb[W];
    int64_t da, db;
    open_params(p, params);
    const S *a = open_operand(data[1], steps[1], fa, &da);
    const S *b = open_operand(data[2], steps[2], fb, &db);
    for (; n >= W; n -= W, y += W, a += da, b += db) F(store)(y, op(F(load)(a), F(load)(b), p));
    if (n) F(store_n)(y, op(last(a, da, (int)n), last(b, db, (int)n), p), (int)n);
}
#define loop_EACH loop_BINARY
TMK_INLINE void loop_TERNARY(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, V (*op)(V, V, V, const S *))
{
    S p[TMK_MAX_PARAMS], *y = (S *)data[0];
    S fa[W], fb[W], fc[W];
    int64_t da, db, dc;
    open_params(p, params);
    const S *a = open_operand(data[1], steps[1], fa, &da);
    const S *b = open_operand(data[2], steps[2], fb, &db);
    const S *c = open_operand(data[3], steps[3], fc, &dc);
    for (; n >= W; n -= W, y += W, a += da, b += db, c += dc) F(store)(y, op(F(load)(a), F(load)(b), F(load)(c), p));
    if (n) F(store_n)(y, op(last(a, da, (int)n), last(b, db, (int)n), last(c, dc, (int)n), p), (int)n);
}
TMK_INLINE void loop_TEST(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, M (*op)(V, const S *))
{
    S p[TMK_MAX_PARAMS];
    uint8_t *y = (uint8_t *)data[0];
    S fa[W];
    int64_t da;
    open_params(p, params);
    const S *a = open_operand(data[1], steps[1], fa, &da);
    for (; n >= W; n -= W, y += W, a += da) F(store_mask)(y, op(F(load)(a), p));
    if (n) store_mask_n(y, op(last(a, da, (int)n), p), (int)n);
}
TMK_INLINE void loop_COMPARE(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, M (*op)(V, V, const S *))
{
    S p[TMK_MAX_PARAMS];
    uint8_t *y = (uint8_t *)data[0];
    S fa[W], fb[W];
    int64_t da, db;
    open_params(p, params);
    const S *a = open_operand(data[1], steps[1], fa, &da);
    const S *b = open_operand(data[2], steps[2], fb, &db);
    for (; n >= W; n -= W, y += W, a += da, b += db) F(store_mask)(y, op(F(load)(a), F(load)(b), p));
    if (n) store_mask_n(y, op(last(a, da, (int)n), last(b, db, (int)n), p), (int)n);
}
TMK_INLINE void loop_WHERE(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, V (*op)(M, V, V))
{
    S *y = (S *)data[0];
    const uint8_t *c = (const uint8_t *)data[1];
    uint8_t fill[W];
    S fa[W], fb[W];
    int64_t da, db;
    if (!steps[1]) {
        memset(fill, *c, W);
        c = fill;
    }
    int64_t step = steps[1] ? W : 0;
    const S *a = open_operand(data[2], steps[2], fa, &da);
    const S *b = open_operand(data[3], steps[3], fb, &db);
    for (; n >= W; n -= W, y += W, c += step, a += da, b += db) F(store)(y, op(F(load_mask)(c), F(load)(a), F(load)(b)));
    if (n) F(store_n)(y, op(step ? load_mask_n(c, (int)n) : F(load_mask)(c), last(a, da, (int)n), last(b, db, (int)n)), (int)n);
}
TMK_INLINE void loop_PART(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, V (*op)(V, const S *))
{
    loop_UNARY(data, steps, n, params, op);
}
/* Two reals to one complex number, one at a time. */
TMK_INLINE void loop_PAIR(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, void (*op)(S, S, S *))
{
    S *y = (S *)data[0];
    for (int64_t i = 0; i < n; i++) op(*(const S *)(data[1] + i * steps[1]), *(const S *)(data[2] + i * steps[2]), y + 2 * i);
}
