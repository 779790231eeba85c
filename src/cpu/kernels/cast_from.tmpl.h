/* All conversions from one plain type to the plain types. The including file defines FROM, FT and, for f32 and f64, FROM_FLOAT.
 * Floats go to integers as x86's own instructions do, written out so that other CPUs agree: towards zero; what does not fit becomes the
 * most negative number; narrow types take the low bits of a wider conversion. */
#ifdef FROM_FLOAT
#define FIT(T, x, low, bound) ((x) >= (FT)(low) && (x) < (FT)(bound) ? (T)(x) : (T)(low))
#define TO_I32(x) FIT(int32_t, x, -0x1p31, 0x1p31)
#define TO_I64(x) FIT(int64_t, x, -0x1p63, 0x1p63)
#define TO_U64(x) ((x) >= (FT)0x1p63 ? (uint64_t)TO_I64((x) - (FT)0x1p63) ^ (UINT64_C(1) << 63) : (uint64_t)TO_I64(x))
#else
#define TO_I32(x) (x)
#define TO_I64(x) (x)
#define TO_U64(x) (x)
#endif

#define TO b8
#define TT uint8_t
#define CONVERT(x) ((x) != 0)
#include "cast_pair.tmpl.h"
#define TO u8
#define TT uint8_t
#define CONVERT(x) (uint8_t)TO_I64(x)
#include "cast_pair.tmpl.h"
#define TO i8
#define TT int8_t
#define CONVERT(x) (int8_t)TO_I32(x)
#include "cast_pair.tmpl.h"
#define TO i16
#define TT int16_t
#define CONVERT(x) (int16_t)TO_I32(x)
#include "cast_pair.tmpl.h"
#define TO i32
#define TT int32_t
#define CONVERT(x) (int32_t)TO_I32(x)
#include "cast_pair.tmpl.h"
#define TO i64
#define TT int64_t
#define CONVERT(x) (int64_t)TO_I64(x)
#include "cast_pair.tmpl.h"
#define TO u16
#define TT uint16_t
#define CONVERT(x) (uint16_t)TO_I32(x)
#include "cast_pair.tmpl.h"
#define TO u32
#define TT uint32_t
#define CONVERT(x) (uint32_t)TO_I64(x)
#include "cast_pair.tmpl.h"
#define TO u64
#define TT uint64_t
#define CONVERT(x) (uint64_t)TO_U64(x)
#include "cast_pair.tmpl.h"
#define TO f32
#define TT float
#define CONVERT(x) (float)(x)
#include "cast_pair.tmpl.h"
#define TO f64
#define TT double
#define CONVERT(x) (double)(x)
#include "cast_pair.tmpl.h"

#undef FIT
#undef TO_I32
#undef TO_I64
#undef TO_U64
#undef FROM
#undef FT
#undef FROM_FLOAT
