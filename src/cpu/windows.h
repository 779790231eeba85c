/* Pooling and resizing over up to three spatial dims: what each output position reads, listed per dim. Private to src/cpu. */
#ifndef TMI_WINDOWS_H
#define TMI_WINDOWS_H

#include "core/tensor_state.h"

/* Pooling: positions start, start + step, ... < end of the input; `full` counts positions of the window before it was cut to the input (padding
 * included). */
typedef struct window { int64_t start, end, full; } window;

/* Resizing: up to four positions with weights. */
typedef struct blend { int64_t at[4]; double weight[4]; } blend;

typedef struct spatial_array {
    char *data;
    int64_t ns, cs, ss[3];   /* elements */
} spatial_array;

typedef struct spatial_run {
    int64_t channels, planes;      /* planes = batch * channels */
    int64_t in[3], out[3], step[3];
    const window *windows[3];      /* per output position of each dim */
    const blend *blends[3];
    int taps[3];                   /* of blends */
    spatial_array x, y, index;     /* input side, output side, indices (int64) */
    bool include_pad;
    int64_t divisor;               /* 0: by window */
} spatial_run;

static inline int64_t spatial_plane(const spatial_run *r, const spatial_array *a, int64_t plane)
{
    return plane / r->channels * a->ns + plane % r->channels * a->cs;
}

#endif
