/* The tables that the files of this folder make, once per ISA: loops per element type, casts. pointwise.c picks one set at start. */
#ifndef TMK_KERNEL_TABLES_H
#define TMK_KERNEL_TABLES_H

#include "cpu/pointwise.h"

#undef complex   /* complex.h takes this word; pointwise.def names a kernel so */

/* Converts n elements; src and dst are contiguous. */
typedef void tmk_cast_fn(void *dst, const void *src, int64_t n);

#define TMK_DECLARE_TABLES(isa)                                                                                       \
    extern tmk_loop *const tmk_loops_f32_##isa[TMK_PW_COUNT], *const tmk_loops_f64_##isa[TMK_PW_COUNT];                \
    extern tmk_loop *const tmk_loops_u8_##isa[TMK_PW_COUNT], *const tmk_loops_i8_##isa[TMK_PW_COUNT];                  \
    extern tmk_loop *const tmk_loops_i16_##isa[TMK_PW_COUNT], *const tmk_loops_i32_##isa[TMK_PW_COUNT];                \
    extern tmk_loop *const tmk_loops_i64_##isa[TMK_PW_COUNT], *const tmk_loops_u16_##isa[TMK_PW_COUNT];                \
    extern tmk_loop *const tmk_loops_u32_##isa[TMK_PW_COUNT], *const tmk_loops_u64_##isa[TMK_PW_COUNT];                \
    extern tmk_loop *const tmk_loops_b8_##isa[TMK_PW_COUNT];                                                           \
    extern tmk_cast_fn *const tmk_casts_##isa[TM_DTYPE_COUNT][TM_DTYPE_COUNT];                                         \
    void tmk_stream_##isa(void *dst, const void *src, size_t nbytes);
TMK_DECLARE_TABLES(scalar)
TMK_DECLARE_TABLES(avx2)
TMK_DECLARE_TABLES(avx512)
TMK_DECLARE_TABLES(neon)
#undef TMK_DECLARE_TABLES

/* Complex arithmetic is compiled once. */
extern tmk_loop *const tmk_loops_c64_scalar[TMK_PW_COUNT], *const tmk_loops_c128_scalar[TMK_PW_COUNT];

#endif
