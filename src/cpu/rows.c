#include "rows.h"

#include "base/alloc.h"
#include "base/cpuinfo.h"
#include "base/pool.h"
#include "pointwise.h"
#include "reduce.h"

const tmk_row_table *tmk_row_ops(int is_double)
{
    switch (tmi_cpu()->isa) {
#ifdef TMK_HAVE_AVX512
    case TMI_ISA_AVX512: return is_double ? &tmk_row_table_f64_avx512 : &tmk_row_table_f32_avx512;
#endif
#ifdef TMK_HAVE_AVX2
    case TMI_ISA_AVX2: return is_double ? &tmk_row_table_f64_avx2 : &tmk_row_table_f32_avx2;
#endif
#ifdef TMK_HAVE_NEON
    case TMI_ISA_NEON: return is_double ? &tmk_row_table_f64_neon : &tmk_row_table_f32_neon;
#endif
    default: return is_double ? &tmk_row_table_f64_scalar : &tmk_row_table_f32_scalar;
    }
}

tm_status tmk_row_scratch_new(tmk_row_scratch *s, int64_t n, int arrays, bool is_double)
{
    s->row_bytes = ((size_t)n * (is_double ? 8 : 4) + 63) / 64 * 64;
    s->per_thread = s->row_bytes * (size_t)arrays;
    s->bytes = s->per_thread * (size_t)tmi_pool_size();
    s->data = tmi_data_alloc(s->bytes);
    return s->data ? TM_OK : TM_NOMEM;
}

void tmk_row_scratch_free(tmk_row_scratch *s)
{
    if (s->data) tmi_data_free(s->data, s->bytes);
    s->data = NULL;
}

void *tmk_row_scratch_get(const tmk_row_scratch *s, int array)
{
    return s->data + (size_t)tmi_pool_thread() * s->per_thread + (size_t)array * s->row_bytes;
}

static bool computed_directly(tm_dtype d) { return d == TM_F32 || d == TM_F64; }

const void *tmk_row_load(const void *at, tm_dtype dtype, int64_t n, void *buf)
{
    if (!at || computed_directly(dtype)) return at;
    tmk_load(dtype, TMK_ACC_F32)(at, 1, n, buf);
    return buf;
}

void *tmk_row_target(void *at, tm_dtype dtype, void *buf) { return computed_directly(dtype) ? at : buf; }

void tmk_row_put(void *at, tm_dtype dtype, int64_t n, const void *row)
{
    if (row != at) tmk_cast(at, dtype, row, TM_F32, n);
}

tm_status tmk_row_compute(const char *op, tm_dtype dtype, tm_dtype *compute)
{
    TMI_REQUIRE(tmi_dtypes[dtype].category == 'F', TM_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, tmi_dtypes[dtype].type_name);
    *compute = dtype == TM_F64 ? TM_F64 : TM_F32;
    return TM_OK;
}
