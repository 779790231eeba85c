/* Tiled attention in float and double; f16 and bf16 compute as float. The algorithm is that of FlashAttention (Dao et al., 2022; Dao, 2023) with
 * tiles for the caches of a CPU. */
#include "flash.h"

#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/gemm/gemm.h"

#define T float
#define DTYPE TM_F32
#define PANEL_COLS tmi_gemm_panel(TM_F32)
#define TILE tmi_gemm_tile_f32
#define ROW(x) x##_f32
#define LOG logf
#define NAME(x) f32_##x
#define f32_forward tmi_flash_forward_f32
#define f32_backward tmi_flash_backward_f32
#include "flash_common.tmpl.h"
#include "flash_forward.tmpl.h"
#include "flash_backward.tmpl.h"
#undef T
#undef DTYPE
#undef PANEL_COLS
#undef TILE
#undef ROW
#undef LOG
#undef NAME

#define T double
#define DTYPE TM_F64
#define PANEL_COLS tmi_gemm_panel(TM_F64)
#define TILE tmi_gemm_tile_f64
#define ROW(x) x##_f64
#define LOG log
#define NAME(x) f64_##x
#define f64_forward tmi_flash_forward_f64
#define f64_backward tmi_flash_backward_f64
#include "flash_common.tmpl.h"
#include "flash_forward.tmpl.h"
#include "flash_backward.tmpl.h"
