/* Pointwise kernels on integers and bool. Not compiled again for AVX-512, which runs the AVX2 objects: these loops wait for memory. */
#include "cpu/isa/vectors.h"
#include "kernel_tables.h"

#ifndef TMK_ISA_AVX512
#define TYPE u8
#define T uint8_t
#define UT uint32_t
#define SIGNED 0
#define BITS 8
#define IS_BOOL 0
#define COLUMN(F, I, U, B, C) I
#include "pointwise_int.tmpl.h"

#define TYPE i8
#define T int8_t
#define UT uint32_t
#define SIGNED 1
#define BITS 8
#define IS_BOOL 0
#define COLUMN(F, I, U, B, C) I
#include "pointwise_int.tmpl.h"

#define TYPE i16
#define T int16_t
#define UT uint32_t
#define SIGNED 1
#define BITS 16
#define IS_BOOL 0
#define COLUMN(F, I, U, B, C) I
#include "pointwise_int.tmpl.h"

#define TYPE i32
#define T int32_t
#define UT uint32_t
#define SIGNED 1
#define BITS 32
#define IS_BOOL 0
#define COLUMN(F, I, U, B, C) I
#include "pointwise_int.tmpl.h"

#define TYPE i64
#define T int64_t
#define UT uint64_t
#define SIGNED 1
#define BITS 64
#define IS_BOOL 0
#define COLUMN(F, I, U, B, C) I
#include "pointwise_int.tmpl.h"

#define TYPE b8
#define T uint8_t
#define UT uint32_t
#define SIGNED 0
#define BITS 1
#define IS_BOOL 1
#define COLUMN(F, I, U, B, C) B
#include "pointwise_int.tmpl.h"
#endif

/* The wide unsigned types are rare: the lowest ISA only. */
#ifdef TMK_ISA_SCALAR
#define TYPE u16
#define T uint16_t
#define UT uint32_t
#define SIGNED 0
#define BITS 16
#define IS_BOOL 0
#define COLUMN(F, I, U, B, C) U
#include "pointwise_int.tmpl.h"

#define TYPE u32
#define T uint32_t
#define UT uint32_t
#define SIGNED 0
#define BITS 32
#define IS_BOOL 0
#define COLUMN(F, I, U, B, C) U
#include "pointwise_int.tmpl.h"

#define TYPE u64
#define T uint64_t
#define UT uint64_t
#define SIGNED 0
#define BITS 64
#define IS_BOOL 0
#define COLUMN(F, I, U, B, C) U
#include "pointwise_int.tmpl.h"
#endif
