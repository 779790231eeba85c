/* The C micro-kernels: scalar level (16-byte vectors of the base instruction set) and NEON. */
#include <string.h>

#include "gemm_kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#define FMA_F(a, b, c) ((f32_vec)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define FMA_D(a, b, c) ((f64_vec)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#else
#define FMA_F(a, b, c) ((c) + (a) * (b))
#define FMA_D(a, b, c) ((c) + (a) * (b))
#endif

#define T float
#define LANES 4
#define FMA FMA_F
#define ALPHA(g) ((g)->alpha.f)
#define f32_table tmi_ukr_generic_f32
#define NAME(x) f32_##x
#include "ukr_generic.tmpl.h"
#define T double
#define LANES 2
#define FMA FMA_D
#define ALPHA(g) ((g)->alpha.d)
#define f64_table tmi_ukr_generic_f64
#define NAME(x) f64_##x
#include "ukr_generic.tmpl.h"
