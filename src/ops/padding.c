/* Padding. Reflection, replication and circular padding pick positions along each padded dim, so their gradients add up in order. */
#include <math.h>

#include "compose.h"
#include "ops/shapes.h"

tm_status tmi_shape_constant_pad_nd(tmi_meta *m, tm_tensor *self, const tm_int *pad, int64_t n, tm_scalar value)
{
    TMI_REQUIRE(n % 2 == 0, TM_INVALID, "Length of pad must be even but instead it equals %lld", (long long)n);
    TMI_REQUIRE(n <= 2 * self->ndim, TM_INVALID, "Length of pad should be no more than twice the number of dimensions of the input. Pad length is %lld while "
                "the input has %d dimensions.", (long long)n, self->ndim);
    tmi_meta_set(m, self->ndim, self->sizes);
    for (int64_t k = 0; k < n / 2; k++) {
        int d = self->ndim - 1 - (int)k;
        m->sizes[d] = self->sizes[d] + pad[2 * k] + pad[2 * k + 1];
        TMI_REQUIRE(m->sizes[d] >= 0, TM_INVALID, "The input size %lld, plus negative padding %lld and %lld, resulted in a negative output size, which is "
                    "invalid. Check dimension %d of your input.", (long long)self->sizes[d], (long long)pad[2 * k], (long long)pad[2 * k + 1], d);
    }
    return TM_OK;
}

tm_tensor *tmi_grad_constant_pad(tm_tensor *grad, const tm_int *pad, int64_t n)
{
    tm_int back[2 * TMI_MAX_DIMS];
    for (int64_t i = 0; i < n; i++) back[i] = -pad[i];
    return tm_constant_pad_nd(grad, back, n);
}

typedef enum pad_mode { REFLECT, REPLICATE, CIRCULAR } pad_mode;

/* Where position i of the padded dim comes from. Circular padding goes round what negative amounts leave. */
static int64_t source_of(int64_t i, int64_t before, int64_t after, int64_t n, pad_mode mode)
{
    int64_t k = i - before;
    if (mode == CIRCULAR) {
        int64_t first = before < 0 ? -before : 0, kept = n - first + (after < 0 ? after : 0);
        k = i - (before > 0 ? before : 0);
        return first + (k % kept + kept) % kept;
    }
    if (mode == REPLICATE) return k < 0 ? 0 : k >= n ? n - 1 : k;
    if (k < 0) k = -k;
    return k >= n ? 2 * (n - 1) - k : k;
}

static tm_tensor *source_index(int64_t before, int64_t after, int64_t n, pad_mode mode, tm_device device)
{
    int64_t len = n + before + after;
    tm_tensor *t = tmi_own(tmi_tensor_new(1, &len, NULL, TM_I64, device));
    for (int64_t i = 0; t && i < len; i++) ((int64_t *)tmi_data(t))[i] = source_of(i, before, after, n, mode);
    return t;
}

static tm_tensor *pad_by_index(tm_tensor *t, const tm_int *pad, int64_t n_pad, pad_mode mode)
{
    for (int64_t k = 0; k < n_pad / 2 && t; k++) {
        int d = t->ndim - 1 - (int)k;
        if (pad[2 * k] == 0 && pad[2 * k + 1] == 0) continue;
        t = tm_index_select(t, d, source_index(pad[2 * k], pad[2 * k + 1], t->sizes[d], mode, t->device));
    }
    return t;
}

/* The gradient goes back to where each element came from. */
static tm_tensor *unpad_by_index(tm_tensor *grad, const tm_int *sizes, int64_t ndim, const tm_int *pad, int64_t n_pad, pad_mode mode)
{
    for (int64_t k = n_pad / 2 - 1; k >= 0 && grad; k--) {
        int d = (int)ndim - 1 - (int)k;
        if (pad[2 * k] == 0 && pad[2 * k + 1] == 0) continue;
        tm_int now[TMI_MAX_DIMS];
        memcpy(now, grad->sizes, (size_t)ndim * sizeof *now);
        now[d] = sizes[d];
        grad = tm_index_add(tmi_make_zeros_as(grad, now, ndim), d, source_index(pad[2 * k], pad[2 * k + 1], sizes[d], mode, grad->device), grad);
    }
    return grad;
}

tm_tensor *tmi_grad_reflection_pad(tm_tensor *grad, const tm_int *sizes, int64_t n, const tm_int *padding, int64_t n_padding)
{
    return unpad_by_index(grad, sizes, n, padding, n_padding, REFLECT);
}
tm_tensor *tmi_grad_replication_pad(tm_tensor *grad, const tm_int *sizes, int64_t n, const tm_int *padding, int64_t n_padding)
{
    return unpad_by_index(grad, sizes, n, padding, n_padding, REPLICATE);
}

static tm_tensor *padded(tm_tensor *self, const tm_int *pad, int64_t n, int dims, pad_mode mode, const char *op)
{
    TMI_REQUIRE_PTR(n == 2 * dims, TM_INVALID, "padding size is expected to be %d", 2 * dims);
    TMI_REQUIRE_PTR(self->ndim == dims + 1 || self->ndim == dims + 2, TM_INVALID, "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and "
                    "other non-zero dimensions for input, but got: %dD", dims + 1, dims + 2, self->ndim);
    for (int d = self->ndim == dims + 2 ? 1 : 0; d < self->ndim; d++)
        TMI_REQUIRE_PTR(self->sizes[d] > 0, TM_INVALID, "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
                        "for input", dims + 1, dims + 2);
    for (int k = 0; k < dims; k++) {
        tm_int size = self->sizes[self->ndim - 1 - k];
        TMI_REQUIRE_PTR(mode != REFLECT || (pad[2 * k] < size && pad[2 * k + 1] < size), TM_INVALID,
                        "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (%lld, %lld) at dimension %d",
                        (long long)pad[2 * k], (long long)pad[2 * k + 1], self->ndim - 1 - k);
        TMI_REQUIRE_PTR(size + pad[2 * k] + pad[2 * k + 1] >= 1, TM_INVALID, "%s: the padded size would be smaller than 1", op);
    }
    tm_tensor *out = pad_by_index(self, pad, n, mode);
    return out == self ? tm_clone(self) : out;
}
tm_tensor *tmi_reflection_pad1d(tm_tensor *self, const tm_int *p, int64_t n) { return padded(self, p, n, 1, REFLECT, "reflection_pad1d"); }
tm_tensor *tmi_reflection_pad2d(tm_tensor *self, const tm_int *p, int64_t n) { return padded(self, p, n, 2, REFLECT, "reflection_pad2d"); }
tm_tensor *tmi_reflection_pad3d(tm_tensor *self, const tm_int *p, int64_t n) { return padded(self, p, n, 3, REFLECT, "reflection_pad3d"); }
tm_tensor *tmi_replication_pad1d(tm_tensor *self, const tm_int *p, int64_t n) { return padded(self, p, n, 1, REPLICATE, "replication_pad1d"); }
tm_tensor *tmi_replication_pad2d(tm_tensor *self, const tm_int *p, int64_t n) { return padded(self, p, n, 2, REPLICATE, "replication_pad2d"); }
tm_tensor *tmi_replication_pad3d(tm_tensor *self, const tm_int *p, int64_t n) { return padded(self, p, n, 3, REPLICATE, "replication_pad3d"); }

tm_tensor *tmi_pad_circular(tm_tensor *self, const tm_int *pad, int64_t n)
{
    TMI_REQUIRE_PTR(self->ndim == n / 2 + 1 || self->ndim == n / 2 + 2, TM_INVALID, "Invalid padding size, expected %d but got %lld", 2 * (self->ndim - 2), (long long)n);
    for (int64_t k = 0; k < n / 2; k++) {
        tm_int size = self->sizes[self->ndim - 1 - k];
        TMI_REQUIRE_PTR(pad[2 * k] <= size && pad[2 * k + 1] <= size, TM_INVALID, "Padding value causes wrapping around more than once.");
        TMI_REQUIRE_PTR(size + pad[2 * k] + pad[2 * k + 1] >= 0, TM_INVALID, "Negative padding value is resulting in an empty dimension");
    }
    tm_tensor *out = pad_by_index(self, pad, n, CIRCULAR);
    return out == self ? tm_clone(self) : out;
}

static tm_tensor *pad_named(tm_tensor *self, const tm_int *pad, int64_t n, int mode, const double *value)
{
    TMI_REQUIRE_PTR(n % 2 == 0, TM_INVALID, "Padding length must be divisible by 2");
    TMI_REQUIRE_PTR(n <= 2 * self->ndim, TM_INVALID, "Padding length should be less than or equal to two times the input dimension but got padding length %lld "
                    "and input of dimension %d", (long long)n, self->ndim);
    if (mode == 0) return tm_constant_pad_nd_full(self, pad, n, value ? tm_f64(*value) : tm_i64(0));
    TMI_REQUIRE_PTR(!value || *value == 0, TM_INVALID, "Padding mode doesn't take in value argument");
    int dims = (int)(n / 2);
    bool fits = dims >= 1 && dims <= 3 && (self->ndim == dims + 1 || self->ndim == dims + 2);
    TMI_REQUIRE_PTR(fits, TM_NOT_IMPLEMENTED,
                    "Padding size %lld is not supported for %dD input tensor.\nSupported combinations for non-constant padding:\n"
                    "  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
                    "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)", (long long)n, self->ndim);
    if (mode == 3) return tmo_pad_circular(self, pad, n);
    if (mode == 1) return dims == 1 ? tm_reflection_pad1d(self, pad, n) : dims == 2 ? tm_reflection_pad2d(self, pad, n) : tm_reflection_pad3d(self, pad, n);
    return dims == 1 ? tm_replication_pad1d(self, pad, n) : dims == 2 ? tm_replication_pad2d(self, pad, n) : tm_replication_pad3d(self, pad, n);
}

tm_tensor *tmi_pad_enum(tm_tensor *self, const tm_int *pad, int64_t n, tm_int mode, const double *value) { return pad_named(self, pad, n, (int)mode, value); }

tm_tensor *tmi_pad(tm_tensor *self, const tm_int *pad, int64_t n, const char *mode, const double *value)
{
    static const char *const names[] = {"constant", "reflect", "replicate", "circular"};
    for (int i = 0; i < 4; i++)
        if (strcmp(mode, names[i]) == 0) return pad_named(self, pad, n, i, value);
    tmi_fail(TM_NOT_IMPLEMENTED, "Unrecognised padding mode %s", mode);
    return NULL;
}
