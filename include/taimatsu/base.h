/* Status codes, the thread's error record, and the export macro. Every other public header includes this one. */
#ifndef TAIMATSU_BASE_H
#define TAIMATSU_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TMI_BUILD)
#define TM_API __attribute__((visibility("default")))
#else
#define TM_API
#endif

/* X(name, number, text): the one list of status codes. Families by hundreds; a number never changes once released. */
#define TM_STATUS_MAP(X)                                                                                              \
    X(OK, 0, "no error")                                                                                              \
    X(INVALID, 100, "invalid argument")                                                                               \
    X(VALUE, 101, "invalid value")                                                                                    \
    X(TYPE, 102, "invalid type")                                                                                      \
    X(INDEX, 103, "index out of range")                                                                               \
    X(ASSERTION, 104, "assertion failed")                                                                             \
    X(SHAPE, 200, "shapes do not fit")                                                                                \
    X(NOT_IMPLEMENTED, 300, "not implemented")                                                                        \
    X(NOMEM, 400, "out of memory")                                                                                    \
    X(DEVICE, 500, "device failure")                                                                                  \
    X(AUTOGRAD, 600, "gradient cannot be computed")                                                                   \
    X(LINALG, 650, "linear algebra failure")                                                                          \
    X(IO, 700, "input or output failed")                                                                              \
    X(NOT_FOUND, 701, "file not found")                                                                               \
    X(FORMAT, 702, "malformed file")                                                                                  \
    X(INTERRUPTED, 800, "interrupted")                                                                                \
    X(PYTHON, 801, "a Python exception is pending")                                                                   \
    X(INTERNAL, 900, "broken invariant")

typedef enum tm_status {
#define TM_STATUS_ENUM(name, number, text) TM_##name = number,
    TM_STATUS_MAP(TM_STATUS_ENUM)
#undef TM_STATUS_ENUM
} tm_status;

/* The name of a status ("TM_SHAPE") and its one-line meaning; both static strings, never NULL. */
TM_API const char *tm_status_name(tm_status status);
TM_API const char *tm_status_text(tm_status status);

/* The calling thread's error record. Fixed size, never allocated, so that running out of memory can be reported too.
 * While `status` is not TM_OK every operator on this thread returns NULL and does nothing, so a chain of calls is
 * checked once, at its end. Release functions, getters and printing always work. */
typedef struct tm_error {
    tm_status status;      /* TM_OK when nothing is pending */
    char message[1024];    /* what went wrong, with operand shapes; NUL-terminated UTF-8 */
    char op[64];           /* operator that failed, "" if none */
    const char *file;      /* source position inside the library */
    int line;
} tm_error;

/* Borrowed pointer to the thread's record; valid until the thread ends. Never NULL. */
TM_API const tm_error *tm_get_error(void);
/* The pending status (TM_OK if none). Cheap: one thread-local load. */
TM_API tm_status tm_error_status(void);
/* Forget the pending error. */
TM_API void tm_error_clear(void);
/* Record an error of one's own (printf format); returns `status`. The first error wins: while one is pending, later ones are dropped. */
TM_API tm_status tm_error_set(tm_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Library version, "major.minor.patch". */
TM_API const char *tm_version(void);

/* Number of threads that operators use (>= 1; default: CPUs in the affinity mask, capped by the cgroup quota).
 * Results never depend on it. TM_INVALID if n < 1. */
TM_API int tm_num_threads(void);
TM_API tm_status tm_set_num_threads(int n);
/* Flush denormals to zero on this thread and in the pool work it starts. False where the CPU cannot. */
TM_API bool tm_set_flush_denormal(bool on);

/* Host memory statistics, in bytes, of the library's allocator. */
typedef struct tm_memory_stats {
    int64_t in_use, peak, reserved;       /* handed out now; its maximum; held from the system */
    int64_t allocations, frees, reused;   /* calls so far; allocations served without asking the system */
} tm_memory_stats;
TM_API void tm_get_memory_stats(tm_memory_stats *out);
/* Give unused memory back to the system. */
TM_API void tm_empty_cache(void);

#ifdef __cplusplus
}
#endif
#endif
