/* Rows of any floating dtype as float or double: f16 and bf16 are converted row by row through scratch that each thread has. */
#ifndef TMK_ROWS_H
#define TMK_ROWS_H

#include "core/tensor_state.h"
#include "kernels/row_ops.h"

/* Scratch for `arrays` rows of n numbers per thread; made before a parallel run, so that tasks cannot fail. */
typedef struct tmk_row_scratch {
    char *data;
    size_t per_thread, bytes, row_bytes;
} tmk_row_scratch;
tm_status tmk_row_scratch_new(tmk_row_scratch *s, int64_t n, int arrays, bool is_double);
void tmk_row_scratch_free(tmk_row_scratch *s);
/* Row number `array` of the calling thread. */
void *tmk_row_scratch_get(const tmk_row_scratch *s, int array);

/* n elements of this dtype as compute numbers: `at` itself, or converted into buf. */
const void *tmk_row_load(const void *at, tm_dtype dtype, int64_t n, void *buf);
/* Where to compute a row that goes to `at`: `at` itself or buf; then put stores it. */
void *tmk_row_target(void *at, tm_dtype dtype, void *buf);
void tmk_row_put(void *at, tm_dtype dtype, int64_t n, const void *row);

/* f32 for f16, bf16 and f32; f64 for f64. TM_NOT_IMPLEMENTED ("op" not implemented for 'Long') for the rest. */
tm_status tmk_row_compute(const char *op, tm_dtype dtype, tm_dtype *compute);

#endif
