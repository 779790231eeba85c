/* gradient: numerical derivatives by differences of neighbours, central inside and one-sided at the ends. */
#include "compose.h"

/* Along one dim with spacing h, or over the points of a vector. */
typedef struct axis {
    tm_int dim;
    double h;
    tm_tensor *points;
} axis;

static tm_tensor *part(tm_tensor *t, tm_int dim, tm_int start, tm_int len) { return tm_narrow(t, dim, start, len); }

/* (a y0 + b y1 + c y2) with numbers. */
static tm_tensor *mix(tm_tensor *y0, double a, tm_tensor *y1, double b, tm_tensor *y2, double c)
{
    return tm_add(tm_add(tm_mul_scalar(y0, tm_f64(a)), tm_mul_scalar(y1, tm_f64(b))), tm_mul_scalar(y2, tm_f64(c)));
}

static tm_tensor *even(tm_tensor *y, const axis *x, tm_int order)
{
    tm_int d = x->dim, n = y->sizes[d];
    double h = x->h;
    tm_tensor *inner = tm_div_scalar(tm_sub(part(y, d, 2, n - 2), part(y, d, 0, n - 2)), tm_f64(2 * h)), *first, *last;
    if (order == 1) {
        first = tm_div_scalar(tm_sub(part(y, d, 1, 1), part(y, d, 0, 1)), tm_f64(h));
        last = tm_div_scalar(tm_sub(part(y, d, n - 1, 1), part(y, d, n - 2, 1)), tm_f64(h));
    } else {
        first = mix(part(y, d, 0, 1), -1.5 / h, part(y, d, 1, 1), 2 / h, part(y, d, 2, 1), -0.5 / h);
        last = mix(part(y, d, n - 1, 1), 1.5 / h, part(y, d, n - 2, 1), -2 / h, part(y, d, n - 3, 1), 0.5 / h);
    }
    return tm_cat_full((tm_tensor *[]){first, inner, last}, 3, d);
}

/* Distances between neighbouring points as a view along dim d of y. */
static tm_tensor *gaps(tm_tensor *y, const axis *x)
{
    tm_int sizes[TMI_MAX_DIMS];
    for (int d = 0; d < y->ndim; d++) sizes[d] = d == x->dim ? y->sizes[d] - 1 : 1;
    return tm_reshape(tm_diff(x->points), sizes, y->ndim);
}

static tm_tensor *uneven(tm_tensor *y, const axis *x, tm_int order)
{
    tm_int d = x->dim, n = y->sizes[d];
    tm_tensor *h = gaps(y, x), *lo = part(h, d, 0, n - 2), *hi = part(h, d, 1, n - 2), *both = tm_add(lo, hi);
    tm_tensor *a = tm_neg(tm_div(hi, tm_mul(lo, both))), *b = tm_div(tm_sub(hi, lo), tm_mul(lo, hi)), *c = tm_div(lo, tm_mul(hi, both));
    tm_tensor *y0 = part(y, d, 0, n - 2), *y1 = part(y, d, 1, n - 2), *y2 = part(y, d, 2, n - 2), *first, *last;
    tm_tensor *inner = tm_add(tm_add(tm_mul(a, y0), tm_mul(b, y1)), tm_mul(c, y2));
    if (order == 1) {
        first = tm_div(tm_sub(part(y, d, 1, 1), part(y, d, 0, 1)), part(h, d, 0, 1));
        last = tm_div(tm_sub(part(y, d, n - 1, 1), part(y, d, n - 2, 1)), part(h, d, n - 2, 1));
    } else {
        tm_tensor *p = part(h, d, 0, 1), *q = part(h, d, 1, 1), *s = tm_add(p, q);
        first = tm_sub(tm_add(tm_mul(tm_neg(tm_div(tm_add(p, s), tm_mul(p, s))), part(y, d, 0, 1)), tm_mul(tm_div(s, tm_mul(p, q)), part(y, d, 1, 1))),
                       tm_mul(tm_div(p, tm_mul(q, s)), part(y, d, 2, 1)));
        p = part(h, d, n - 3, 1);
        q = part(h, d, n - 2, 1);
        s = tm_add(p, q);
        last = tm_add(tm_sub(tm_mul(tm_div(q, tm_mul(p, s)), part(y, d, n - 3, 1)), tm_mul(tm_div(s, tm_mul(p, q)), part(y, d, n - 2, 1))),
                      tm_mul(tm_div(tm_add(q, s), tm_mul(q, s)), part(y, d, n - 1, 1)));
    }
    return tm_cat_full((tm_tensor *[]){first, inner, last}, 3, d);
}

static tm_tensor_list *differences(tm_tensor *self, axis *axes, int64_t n, tm_int order)
{
    TMI_REQUIRE_PTR(order == 1 || order == 2, TM_INVALID, "torch.gradient only supports edge_order=1 and edge_order=2.");
    uint64_t seen = 0;
    tm_tensor_list *out = tmi_own_list(tmi_list_new(n));
    for (int64_t i = 0; out && i < n; i++) {
        TMI_TRY_PTR(tmi_wrap_dim(&axes[i].dim, self->ndim));
        TMI_REQUIRE_PTR(!(seen >> axes[i].dim & 1), TM_INVALID, "dim %lld appears multiple times in the list of dims", (long long)axes[i].dim);
        seen |= UINT64_C(1) << axes[i].dim;
        tm_int size = self->ndim ? self->sizes[axes[i].dim] : 1;
        TMI_REQUIRE_PTR(size >= order + 1, TM_INVALID, "torch.gradient expected each dimension size to be at least edge_order+1");
        TMI_REQUIRE_PTR(!axes[i].points || (axes[i].points->ndim == 1 && axes[i].points->numel == size), TM_INVALID,
                        "torch.gradient expected each element of `spacing` to have one dimension and as many points as input has in that dimension");
        tm_tensor *t = axes[i].points ? uneven(self, &axes[i], order) : even(self, &axes[i], order);
        if (!t) return NULL;
        tmi_retain(t);
        out->t[i] = t;
    }
    return out;
}

/* dims NULL: all of them, or the one. */
static tm_tensor_list *over(tm_tensor *self, const tm_int *dims, int64_t n_dims, const tm_scalar *numbers, int64_t n_numbers, tm_tensor *const *points,
                            int64_t n_points, tm_int order)
{
    axis axes[TMI_MAX_DIMS];
    int64_t n = dims ? n_dims : self->ndim;
    TMI_REQUIRE_PTR(n <= TMI_MAX_DIMS, TM_INVALID, "torch.gradient: too many dims");
    TMI_REQUIRE_PTR(!numbers || n_numbers == n || n_numbers == 1, TM_INVALID, "torch.gradient expected spacing to be unspecified, a scalar, or a list of length %lld",
                    (long long)n);
    TMI_REQUIRE_PTR(!points || n_points == n, TM_INVALID, "torch.gradient expected spacing to be unspecified, or a list of %lld tensors", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        axes[i] = (axis){.dim = dims ? dims[i] : i, .h = numbers ? tmi_scalar_f64(numbers[n_numbers == 1 ? 0 : i]) : 1, .points = points ? points[i] : NULL};
    }
    return differences(self, axes, n, order);
}

tm_tensor_list *tmi_gradient_number(tm_tensor *self, const tm_scalar *spacing, const tm_int *dim, tm_int order)
{
    return over(self, dim, 1, spacing, spacing ? 1 : 0, NULL, 0, order);
}
tm_tensor_list *tmi_gradient_number_dims(tm_tensor *self, tm_scalar spacing, const tm_int *dim, int64_t n_dim, tm_int order)
{
    return over(self, dim, n_dim, &spacing, 1, NULL, 0, order);
}
tm_tensor_list *tmi_gradient_dims(tm_tensor *self, const tm_int *dim, int64_t n_dim, tm_int order) { return over(self, dim, n_dim, NULL, 0, NULL, 0, order); }
tm_tensor_list *tmi_gradient_numbers(tm_tensor *self, const tm_scalar *spacing, int64_t n, const tm_int *dim, tm_int order)
{
    return over(self, dim, 1, spacing, n, NULL, 0, order);
}
tm_tensor_list *tmi_gradient_numbers_dims(tm_tensor *self, const tm_scalar *spacing, int64_t n, const tm_int *dim, int64_t n_dim, tm_int order)
{
    return over(self, dim, n_dim, spacing, n, NULL, 0, order);
}
tm_tensor_list *tmi_gradient_points(tm_tensor *self, tm_tensor *const *spacing, int64_t n, const tm_int *dim, tm_int order)
{
    return over(self, dim, 1, NULL, 0, spacing, n, order);
}
tm_tensor_list *tmi_gradient_points_dims(tm_tensor *self, tm_tensor *const *spacing, int64_t n, const tm_int *dim, int64_t n_dim, tm_int order)
{
    return over(self, dim, n_dim, NULL, 0, spacing, n, order);
}
