/* Pooling and resizing of planes. Included with T (stored), A (computed), LOAD, STORE, ISNAN and NAME defined. A task owns whole planes. */

static inline A NAME(get)(const spatial_array *a, int64_t base, int64_t z, int64_t y, int64_t x)
{
    return LOAD(((const T *)(const void *)a->data)[base + z * a->ss[0] + y * a->ss[1] + x * a->ss[2]]);
}
static inline void NAME(put)(const spatial_array *a, int64_t base, int64_t z, int64_t y, int64_t x, A value)
{
    ((T *)(void *)a->data)[base + z * a->ss[0] + y * a->ss[1] + x * a->ss[2]] = STORE(value);
}

/* The largest element of a window (NaN counts as largest) and its place in the plane. */
static A NAME(window_max)(const spatial_run *r, int64_t base, const window *wz, const window *wy, const window *wx, int64_t *place)
{
    A best = NAME(get)(&r->x, base, wz->start, wy->start, wx->start);
    int64_t at = (wz->start * r->in[1] + wy->start) * r->in[2] + wx->start;
    for (int64_t z = wz->start; z < wz->end; z += r->step[0])
        for (int64_t y = wy->start; y < wy->end; y += r->step[1])
            for (int64_t x = wx->start; x < wx->end; x += r->step[2]) {
                A v = NAME(get)(&r->x, base, z, y, x);
                if (v > best || ISNAN(v)) best = v, at = (z * r->in[1] + y) * r->in[2] + x;
            }
    *place = at;
    return best;
}

static void NAME(max_planes)(void *ctx, int64_t begin, int64_t end)
{
    const spatial_run *r = ctx;
    for (int64_t p = begin; p < end; p++) {
        int64_t x0 = spatial_plane(r, &r->x, p), y0 = spatial_plane(r, &r->y, p), i0 = spatial_plane(r, &r->index, p), place;
        for (int64_t z = 0; z < r->out[0]; z++)
            for (int64_t y = 0; y < r->out[1]; y++)
                for (int64_t x = 0; x < r->out[2]; x++) {
                    A m = NAME(window_max)(r, x0, &r->windows[0][z], &r->windows[1][y], &r->windows[2][x], &place);
                    NAME(put)(&r->y, y0, z, y, x, m);
                    ((int64_t *)(void *)r->index.data)[i0 + z * r->index.ss[0] + y * r->index.ss[1] + x * r->index.ss[2]] = place;
                }
    }
}

static double NAME(divisor)(const spatial_run *r, const window *z, const window *y, const window *x)
{
    if (r->divisor) return (double)r->divisor;
    if (r->include_pad) return (double)(z->full * y->full * x->full);
    return (double)((z->end - z->start) * (y->end - y->start) * (x->end - x->start));
}

static void NAME(mean_planes)(void *ctx, int64_t begin, int64_t end)
{
    const spatial_run *r = ctx;
    for (int64_t p = begin; p < end; p++) {
        int64_t x0 = spatial_plane(r, &r->x, p), y0 = spatial_plane(r, &r->y, p);
        for (int64_t z = 0; z < r->out[0]; z++)
            for (int64_t y = 0; y < r->out[1]; y++)
                for (int64_t x = 0; x < r->out[2]; x++) {
                    const window *wz = &r->windows[0][z], *wy = &r->windows[1][y], *wx = &r->windows[2][x];
                    A sum = 0;
                    for (int64_t iz = wz->start; iz < wz->end; iz++)
                        for (int64_t iy = wy->start; iy < wy->end; iy++)
                            for (int64_t ix = wx->start; ix < wx->end; ix++) sum += NAME(get)(&r->x, x0, iz, iy, ix);
                    NAME(put)(&r->y, y0, z, y, x, sum / (A)NAME(divisor)(r, wz, wy, wx));
                }
    }
}

#ifdef WITH_GRADIENTS
/* Clears plane p of the input side in computing precision: `row` of all its elements. */
static void NAME(write_plane)(const spatial_run *r, int64_t p, const A *plane)
{
    int64_t x0 = spatial_plane(r, &r->x, p);
    for (int64_t z = 0; z < r->in[0]; z++)
        for (int64_t y = 0; y < r->in[1]; y++)
            for (int64_t x = 0; x < r->in[2]; x++) NAME(put)(&r->x, x0, z, y, x, *plane++);
}

/* One output's gradient goes into the plane; which way depends on the operator. */
static void NAME(max_back)(const spatial_run *r, int64_t p, A *plane)
{
    int64_t y0 = spatial_plane(r, &r->y, p), i0 = spatial_plane(r, &r->index, p);
    for (int64_t z = 0; z < r->out[0]; z++)
        for (int64_t y = 0; y < r->out[1]; y++)
            for (int64_t x = 0; x < r->out[2]; x++) {
                int64_t at = ((const int64_t *)(const void *)r->index.data)[i0 + z * r->index.ss[0] + y * r->index.ss[1] + x * r->index.ss[2]];
                plane[at] += NAME(get)(&r->y, y0, z, y, x);
            }
}

static void NAME(mean_back)(const spatial_run *r, int64_t p, A *plane)
{
    int64_t y0 = spatial_plane(r, &r->y, p);
    for (int64_t z = 0; z < r->out[0]; z++)
        for (int64_t y = 0; y < r->out[1]; y++)
            for (int64_t x = 0; x < r->out[2]; x++) {
                const window *wz = &r->windows[0][z], *wy = &r->windows[1][y], *wx = &r->windows[2][x];
                A share = NAME(get)(&r->y, y0, z, y, x) / (A)NAME(divisor)(r, wz, wy, wx);
                for (int64_t iz = wz->start; iz < wz->end; iz++)
                    for (int64_t iy = wy->start; iy < wy->end; iy++)
                        for (int64_t ix = wx->start; ix < wx->end; ix++) plane[(iz * r->in[1] + iy) * r->in[2] + ix] += share;
            }
}

static void NAME(blend_back)(const spatial_run *r, int64_t p, A *plane)
{
    int64_t y0 = spatial_plane(r, &r->y, p);
    for (int64_t z = 0; z < r->out[0]; z++)
        for (int64_t y = 0; y < r->out[1]; y++)
            for (int64_t x = 0; x < r->out[2]; x++) {
                const blend *bz = &r->blends[0][z], *by = &r->blends[1][y], *bx = &r->blends[2][x];
                A g = NAME(get)(&r->y, y0, z, y, x);
                for (int i = 0; i < r->taps[0]; i++)
                    for (int j = 0; j < r->taps[1]; j++)
                        for (int k = 0; k < r->taps[2]; k++)
                            plane[(bz->at[i] * r->in[1] + by->at[j]) * r->in[2] + bx->at[k]] += g * (A)(bz->weight[i] * by->weight[j] * bx->weight[k]);
            }
}

static void NAME(back_planes)(const spatial_run *r, int64_t begin, int64_t end, A *plane, void (*one)(const spatial_run *, int64_t, A *))
{
    size_t bytes = (size_t)(r->in[0] * r->in[1] * r->in[2]) * sizeof(A);
    for (int64_t p = begin; p < end; p++) {
        memset(plane, 0, bytes);
        one(r, p, plane);
        NAME(write_plane)(r, p, plane);
    }
}

static void NAME(max_back_planes)(const spatial_run *r, int64_t begin, int64_t end, void *plane) { NAME(back_planes)(r, begin, end, plane, NAME(max_back)); }
static void NAME(mean_back_planes)(const spatial_run *r, int64_t begin, int64_t end, void *plane) { NAME(back_planes)(r, begin, end, plane, NAME(mean_back)); }
static void NAME(blend_back_planes)(const spatial_run *r, int64_t begin, int64_t end, void *plane) { NAME(back_planes)(r, begin, end, plane, NAME(blend_back)); }

static void NAME(blend_planes)(void *ctx, int64_t begin, int64_t end)
{
    const spatial_run *r = ctx;
    for (int64_t p = begin; p < end; p++) {
        int64_t x0 = spatial_plane(r, &r->x, p), y0 = spatial_plane(r, &r->y, p);
        for (int64_t z = 0; z < r->out[0]; z++)
            for (int64_t y = 0; y < r->out[1]; y++)
                for (int64_t x = 0; x < r->out[2]; x++) {
                    const blend *bz = &r->blends[0][z], *by = &r->blends[1][y], *bx = &r->blends[2][x];
                    A sum = 0;
                    for (int i = 0; i < r->taps[0]; i++)
                        for (int j = 0; j < r->taps[1]; j++) {
                            A line = 0;
                            for (int k = 0; k < r->taps[2]; k++) line += NAME(get)(&r->x, x0, bz->at[i], by->at[j], bx->at[k]) * (A)bx->weight[k];
                            sum += line * (A)(bz->weight[i] * by->weight[j]);
                        }
                    NAME(put)(&r->y, y0, z, y, x, sum);
                }
    }
}
#endif

#undef T
#undef A
#undef LOAD
#undef STORE
#undef ISNAN
#undef NAME
#undef WITH_GRADIENTS
