/* Names and native vector widths for files that are compiled once per instruction set. */
#ifndef TMK_ISA_NAME_H
#define TMK_ISA_NAME_H

#define TMK_PASTE_(a, b) a##_##b
#define TMK_PASTE(a, b) TMK_PASTE_(a, b)
#define TMK_FOR_ISA(name) TMK_PASTE(name, TMK_ISA)

#if defined(TMK_ISA_AVX512)
#define TMK_VECTOR_BYTES 64
#elif defined(TMK_ISA_AVX2)
#define TMK_VECTOR_BYTES 32
#else
#define TMK_VECTOR_BYTES 16
#endif

#endif
