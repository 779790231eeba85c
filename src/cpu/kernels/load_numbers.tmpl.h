/* Loads from every real dtype to D. Wants D and TO(name). */
#define CONVERT(x) ((D)(x))
#define S uint8_t
#define NAME TO(u8)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S int8_t
#define NAME TO(i8)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S int16_t
#define NAME TO(i16)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S int32_t
#define NAME TO(i32)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S int64_t
#define NAME TO(i64)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S uint16_t
#define NAME TO(u16)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S uint32_t
#define NAME TO(u32)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S uint64_t
#define NAME TO(u64)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S float
#define NAME TO(f32)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S double
#define NAME TO(f64)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#undef CONVERT
#define CONVERT(x) ((D)(x ? 1 : 0))
#define S uint8_t
#define NAME TO(bool)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#undef CONVERT
#define CONVERT(x) ((D)half_to_float(x))
#define S tmi_f16
#define NAME TO(f16)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#undef CONVERT
#define CONVERT(x) ((D)tmi_bf16_to_f32(x))
#define S tmi_bf16
#define NAME TO(bf16)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#undef CONVERT
#define CONVERT(x) ((D)tmi_f8_to_f32(x, TM_F8_E4M3FN))
#define S uint8_t
#define NAME TO(f8_e4m3fn)
#include "load_number.tmpl.h"
#undef NAME
#undef CONVERT
#define CONVERT(x) ((D)tmi_f8_to_f32(x, TM_F8_E5M2))
#define NAME TO(f8_e5m2)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#undef CONVERT
#define CONVERT(x) FROM_COMPLEX(x)
#define S tmi_c64
#define NAME TO(c64)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S tmi_c128
#define NAME TO(c128)
#include "load_number.tmpl.h"
#undef S
#undef NAME
#undef CONVERT
