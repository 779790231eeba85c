/* Pointwise kernels on complex numbers: in the objects of the lowest ISA only. */
#include "cpu/isa/vectors.h"
#include "kernel_tables.h"

#ifdef TMK_ISA_SCALAR
#define TYPE c64
#define T tmi_c64
#define R float
#define LIBM(x) x##f
#include "pointwise_complex.tmpl.h"

#define TYPE c128
#define T tmi_c128
#define R double
#define LIBM(x) x
#include "pointwise_complex.tmpl.h"
#endif
