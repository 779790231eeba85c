/* Tensors: strided views of reference-counted storage. Metadata, data access, ownership, scopes.
 *
 * Ownership. An operator's result belongs to the innermost open tm_scope of the thread, or to the caller where none is open (then
 * tm_release it). Closing a scope releases every tensor made inside except those kept with tm_keep. In-place and _out forms return
 * their argument, borrowed. Every function is thread-safe unless it says otherwise; two threads that write one tensor's data are
 * the caller's race. Functions that return a pointer return NULL on failure with the thread's error record set (base.h). */
#ifndef TAIMATSU_TENSOR_H
#define TAIMATSU_TENSOR_H

#include "taimatsu/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Numbers are stable. */
typedef enum tm_dtype {
    TM_BOOL = 0, TM_U8 = 1, TM_I8 = 2, TM_I16 = 3, TM_I32 = 4, TM_I64 = 5, TM_F16 = 6, TM_F32 = 7, TM_F64 = 8,
    TM_C64 = 9, TM_C128 = 10, TM_BF16 = 11, TM_U16 = 12, TM_U32 = 13, TM_U64 = 14, TM_F8_E4M3FN = 15, TM_F8_E5M2 = 16,
    TM_DTYPE_COUNT = 17,
    TM_DTYPE_DEFAULT = 255,   /* "not given": the operator's own rule decides */
} tm_dtype;

typedef enum tm_device_type { TM_CPU = 0, TM_META = 1, TM_DEVICE_TYPE_COUNT = 2, TM_DEVICE_DEFAULT = 255 } tm_device_type;
typedef struct tm_device {
    uint8_t type;   /* tm_device_type */
    int8_t index;   /* -1: the current one */
} tm_device;

typedef enum tm_layout { TM_STRIDED = 0 } tm_layout;
typedef enum tm_memory_format { TM_CONTIGUOUS = 0, TM_PRESERVE = 1, TM_CHANNELS_LAST = 2, TM_CHANNELS_LAST_3D = 3 } tm_memory_format;

/* A size, count or index in a shape computation: a number, or (values below TM_INT_SYMBOL) a symbol of a captured graph. Shape rules,
 * composite bodies and gradient formulas use this type; data access uses int64_t. */
typedef int64_t tm_int;
#define TM_INT_SYMBOL (INT64_MIN + ((int64_t)1 << 32))

/* A number of any kind, as operators take it. */
typedef enum tm_scalar_tag {
    TM_SCALAR_BOOL, TM_SCALAR_I64, TM_SCALAR_U64, TM_SCALAR_F64, TM_SCALAR_C128, TM_SCALAR_SYMBOL
} tm_scalar_tag;
typedef struct tm_scalar {
    tm_scalar_tag tag;
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        struct { double re, im; } c;
    } v;
} tm_scalar;
static inline tm_scalar tm_bool(bool x) { tm_scalar s; s.tag = TM_SCALAR_BOOL; s.v.c.re = s.v.c.im = 0; s.v.b = x; return s; }
static inline tm_scalar tm_i64(int64_t x) { tm_scalar s; s.tag = TM_SCALAR_I64; s.v.c.im = 0; s.v.i = x; return s; }
static inline tm_scalar tm_f64(double x) { tm_scalar s; s.tag = TM_SCALAR_F64; s.v.c.im = 0; s.v.f = x; return s; }
static inline tm_scalar tm_c128(double re, double im) { tm_scalar s; s.tag = TM_SCALAR_C128; s.v.c.re = re; s.v.c.im = im; return s; }

typedef struct tm_tensor tm_tensor;
typedef struct tm_scope tm_scope;
typedef struct tm_generator tm_generator;
typedef struct tm_tensor_list tm_tensor_list;   /* result of split and the like: owned like a tensor */

/* ---- dtypes */
TM_API size_t tm_dtype_size(tm_dtype dtype);                    /* bytes per element */
TM_API const char *tm_dtype_name(tm_dtype dtype);               /* "float32" */
TM_API tm_dtype tm_dtype_promote(tm_dtype a, tm_dtype b);       /* PyTorch's table; TM_DTYPE_COUNT (error recorded) where it refuses */
TM_API tm_dtype tm_get_default_dtype(void);
TM_API tm_status tm_set_default_dtype(tm_dtype dtype);          /* a floating type, else TM_TYPE */

/* ---- making. sizes: ndim numbers >= 0; the result is contiguous and belongs to scope or caller */
TM_API tm_tensor *tm_tensor_empty(int ndim, const int64_t *sizes, tm_dtype dtype);          /* uninitialised, CPU */
TM_API tm_tensor *tm_tensor_from_data(int ndim, const int64_t *sizes, tm_dtype dtype, const void *data); /* copies */
/* Borrows `data` (strides in elements, NULL = contiguous); deleter(ctx) runs when the last reference goes; on failure it does not run. */
TM_API tm_tensor *tm_tensor_wrap(int ndim, const int64_t *sizes, const int64_t *strides, tm_dtype dtype, void *data,
                                 void (*deleter)(void *ctx), void *ctx);
TM_API tm_tensor *tm_tensor_scalar(tm_scalar value, tm_dtype dtype);                          /* 0-d */

/* ---- ownership */
TM_API tm_tensor *tm_retain(tm_tensor *t);   /* one reference more, the caller's own; returns t; NULL stays NULL */
TM_API void tm_release(tm_tensor *t);        /* gives one back; NULL is fine */
TM_API tm_scope *tm_scope_open(void);        /* NULL with TM_NOMEM recorded on failure; tm_scope_close(NULL) is fine */
TM_API void tm_scope_close(tm_scope *scope); /* also closes scopes opened after it on this thread */
TM_API tm_tensor *tm_keep(tm_tensor *t);     /* moves t from the innermost scope to the enclosing one (or the caller); returns t */

/* ---- metadata; t must not be NULL; pointers are borrowed and live as long as t */
TM_API int tm_tensor_ndim(const tm_tensor *t);
TM_API const int64_t *tm_tensor_sizes(const tm_tensor *t);
TM_API const int64_t *tm_tensor_strides(const tm_tensor *t);   /* in elements */
TM_API int64_t tm_tensor_size(const tm_tensor *t, int dim);    /* dim may be negative; -1 with TM_INDEX recorded when out of range */
TM_API int64_t tm_tensor_offset(const tm_tensor *t);           /* in elements */
TM_API int64_t tm_tensor_numel(const tm_tensor *t);
TM_API tm_dtype tm_tensor_dtype(const tm_tensor *t);
TM_API tm_device tm_tensor_device(const tm_tensor *t);
TM_API bool tm_tensor_is_contiguous(const tm_tensor *t);
TM_API void *tm_tensor_data(const tm_tensor *t);               /* first element; NULL for meta and empty tensors. Read fresh: never cache it */
TM_API tm_status tm_tensor_item(const tm_tensor *t, tm_scalar *out); /* the value of a one-element tensor; TM_INVALID otherwise */
TM_API uint64_t tm_tensor_version(const tm_tensor *t);

/* ---- gradients (autograd.h has the rest) */
TM_API bool tm_tensor_requires_grad(const tm_tensor *t);
TM_API tm_status tm_tensor_set_requires_grad(tm_tensor *t, bool on);
TM_API tm_tensor *tm_tensor_grad(const tm_tensor *t);          /* borrowed; NULL if there is none */
TM_API tm_status tm_tensor_set_grad(tm_tensor *t, tm_tensor *grad); /* NULL clears */

/* ---- lists */
TM_API int64_t tm_tensor_list_len(const tm_tensor_list *l);
TM_API tm_tensor *tm_tensor_list_get(const tm_tensor_list *l, int64_t i);   /* borrowed from the list */
TM_API void tm_tensor_list_release(tm_tensor_list *l);

/* ---- random numbers: PyTorch's CPU streams (mt19937) */
TM_API tm_generator *tm_generator_new(uint64_t seed);
TM_API void tm_generator_release(tm_generator *g);
TM_API tm_generator *tm_default_generator(void);               /* borrowed */
TM_API void tm_generator_seed(tm_generator *g, uint64_t seed);
TM_API uint64_t tm_generator_initial_seed(const tm_generator *g);
TM_API void tm_manual_seed(uint64_t seed);                     /* seeds the default generator */

#ifdef __cplusplus
}
#endif
#endif
