/* Convolutions over up to three spatial dims, as matrix products whose second operand is gathered while it is packed (im2col without the
 * matrix), or directly where a group has few output channels. Private to src/cpu/conv.
 *
 * Three primitives serve convolution and transposed convolution, forward and backward: apply (input, weight -> output), input_grad (output's
 * gradient, weight -> input's) and weight_grad (input, output's gradient -> weight's). Channel counts are per group. Arrays have any
 * strides; positions of arrays that a matrix product reads or writes lie evenly (conv_even). */
#ifndef TMI_CONV_H
#define TMI_CONV_H

#include "core/tensor_state.h"

typedef struct conv_geometry {
    int64_t batch, groups, cin, cout;
    int64_t in[3], out[3], k[3], stride[3], pad[3], dilation[3];
} conv_geometry;

typedef struct conv_array {
    void *data;
    int64_t ns, cs, ss[3];   /* elements: image, channel, spatial */
} conv_array;

/* Weights as [groups * cout][cin][taps], dense. bias NULL: none. */
typedef struct conv_kernels {
    tm_status (*apply)(const conv_geometry *g, const conv_array *in, const void *weight, const void *bias, const conv_array *out);
    tm_status (*input_grad)(const conv_geometry *g, const conv_array *gout, const void *weight, const conv_array *gin);
    tm_status (*weight_grad)(const conv_geometry *g, const conv_array *in, const conv_array *gout, void *gweight);
} conv_kernels;
extern const conv_kernels tmi_conv_f32, tmi_conv_f64, tmi_conv_i64;

static inline int64_t conv_positions(const int64_t *n) { return n[0] * n[1] * n[2]; }
static inline int64_t conv_taps(const conv_geometry *g) { return conv_positions(g->k); }
static inline int64_t conv_low(int64_t a, int64_t b) { return a < b ? a : b; }
/* Smallest j >= 0 with first + j * step >= 0, and the number of j with first + j * step < size; step > 0. */
static inline int64_t conv_enter(int64_t first, int64_t step) { return first >= 0 ? 0 : step == 1 ? -first : (-first + step - 1) / step; }
static inline int64_t conv_leave(int64_t first, int64_t step, int64_t size)
{
    return first >= size ? 0 : step == 1 ? size - first : (size - first + step - 1) / step;
}
/* Whether positions, counted row by row, are one stride apart; that stride. */
static inline bool conv_even(const conv_array *a, const int64_t *n, int64_t *step)
{
    *step = n[2] > 1 ? a->ss[2] : n[1] > 1 ? a->ss[1] : n[0] > 1 ? a->ss[0] : 1;
    return (n[2] == 1 || a->ss[2] == *step) && (n[1] == 1 || a->ss[1] == n[2] * *step) && (n[0] == 1 || a->ss[0] == n[1] * n[2] * *step);
}

/* Tap t of a kernel, row by row. */
static inline void conv_split_tap(const conv_geometry *g, int64_t t, int64_t *tap)
{
    tap[2] = t % g->k[2];
    tap[1] = t / g->k[2] % g->k[1];
    tap[0] = t / g->k[2] / g->k[1];
}

/* Output row `row` (of out[0] * out[1]) under tap t: positions [lo, hi) of it meet the input at (z, y, x + j * stride). */
typedef struct conv_meeting { int64_t oz, oy, z, y, x, lo, hi; } conv_meeting;
static inline bool conv_meet(const conv_geometry *g, int64_t row, int64_t t, conv_meeting *m)
{
    int64_t tap[3];
    conv_split_tap(g, t, tap);
    m->oz = row / g->out[1], m->oy = row % g->out[1];
    m->z = m->oz * g->stride[0] - g->pad[0] + tap[0] * g->dilation[0];
    m->y = m->oy * g->stride[1] - g->pad[1] + tap[1] * g->dilation[1];
    m->x = tap[2] * g->dilation[2] - g->pad[2];
    m->lo = conv_enter(m->x, g->stride[2]);
    m->hi = conv_low(conv_leave(m->x, g->stride[2], g->in[2]), g->out[2]);
    return m->z >= 0 && m->z < g->in[0] && m->y >= 0 && m->y < g->in[1] && m->lo < m->hi;
}
/* Where a meeting begins in the input and in the output. */
static inline int64_t conv_in_at(const conv_geometry *g, const conv_array *a, const conv_meeting *m)
{
    return m->z * a->ss[0] + m->y * a->ss[1] + (m->x + m->lo * g->stride[2]) * a->ss[2];
}
static inline int64_t conv_out_at(const conv_array *a, const conv_meeting *m) { return m->oz * a->ss[0] + m->oy * a->ss[1] + m->lo * a->ss[2]; }

#endif
