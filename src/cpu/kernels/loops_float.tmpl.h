/* Loops over straight runs of f32 or f64, one per form of pointwise.def. The including file defines S (element type), V (vector), M (mask),
 * W (lanes) and F(x) (the vocabulary's name for this element type, v_x_f32). The operator comes in as a function that is always inlined.
 *
 * An input that is one repeated value is copied to a vector on the stack and its pointer does not advance, so each form has one loop.
 * The last n % W elements run through the same vector code, so a value never depends on where it stands. */

/* Where an input is read and how far it moves per vector. */
typedef struct TMK_LOCAL_NAME(operand) {
    const char *p;
    int64_t step;
    S fill[W];
} operand;

TMK_INLINE void open_operand(operand *o, const char *p, int64_t step)
{
    o->p = p;
    o->step = W * (int64_t)sizeof(S);
    if (step) return;
    F(store)(o->fill, F(set)(*(const S *)p));
    o->p = (const char *)o->fill;
    o->step = 0;
}
TMK_INLINE V next(operand *o)
{
    V v = F(load)((const S *)o->p);
    o->p += o->step;
    return v;
}
TMK_INLINE V last(const operand *o, int n) { return o->step ? F(load_n)((const S *)o->p, n) : F(load)((const S *)o->p); }

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
    operand a;
    open_params(p, params);
    open_operand(&a, data[1], steps[1]);
    for (; n >= W; n -= W, y += W) F(store)(y, op(next(&a), p));
    if (n) F(store_n)(y, op(last(&a, (int)n), p), (int)n);
}
TMK_INLINE void loop_BINARY(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, V (*op)(V, V, const S *))
{
    S p[TMK_MAX_PARAMS], *y = (S *)data[0];
    operand a, b;
    open_params(p, params);
    open_operand(&a, data[1], steps[1]);
    open_operand(&b, data[2], steps[2]);
    for (; n >= W; n -= W, y += W) F(store)(y, op(next(&a), next(&b), p));
    if (n) F(store_n)(y, op(last(&a, (int)n), last(&b, (int)n), p), (int)n);
}
#define loop_EACH loop_BINARY
TMK_INLINE void loop_TERNARY(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, V (*op)(V, V, V, const S *))
{
    S p[TMK_MAX_PARAMS], *y = (S *)data[0];
    operand a, b, c;
    open_params(p, params);
    open_operand(&a, data[1], steps[1]);
    open_operand(&b, data[2], steps[2]);
    open_operand(&c, data[3], steps[3]);
    for (; n >= W; n -= W, y += W) F(store)(y, op(next(&a), next(&b), next(&c), p));
    if (n) F(store_n)(y, op(last(&a, (int)n), last(&b, (int)n), last(&c, (int)n), p), (int)n);
}
TMK_INLINE void loop_TEST(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, M (*op)(V, const S *))
{
    S p[TMK_MAX_PARAMS];
    uint8_t *y = (uint8_t *)data[0];
    operand a;
    open_params(p, params);
    open_operand(&a, data[1], steps[1]);
    for (; n >= W; n -= W, y += W) F(store_mask)(y, op(next(&a), p));
    if (n) store_mask_n(y, op(last(&a, (int)n), p), (int)n);
}
TMK_INLINE void loop_COMPARE(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, M (*op)(V, V, const S *))
{
    S p[TMK_MAX_PARAMS];
    uint8_t *y = (uint8_t *)data[0];
    operand a, b;
    open_params(p, params);
    open_operand(&a, data[1], steps[1]);
    open_operand(&b, data[2], steps[2]);
    for (; n >= W; n -= W, y += W) F(store_mask)(y, op(next(&a), next(&b), p));
    if (n) store_mask_n(y, op(last(&a, (int)n), last(&b, (int)n), p), (int)n);
}
TMK_INLINE void loop_WHERE(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, V (*op)(M, V, V))
{
    S *y = (S *)data[0];
    const uint8_t *c = (const uint8_t *)data[1];
    uint8_t fill[W];
    operand a, b;
    if (!steps[1]) {
        memset(fill, *c, W);
        c = fill;
    }
    int64_t step = steps[1] ? W : 0;
    open_operand(&a, data[2], steps[2]);
    open_operand(&b, data[3], steps[3]);
    for (; n >= W; n -= W, y += W, c += step) F(store)(y, op(F(load_mask)(c), next(&a), next(&b)));
    if (n) F(store_n)(y, op(step ? load_mask_n(c, (int)n) : F(load_mask)(c), last(&a, (int)n), last(&b, (int)n)), (int)n);
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
