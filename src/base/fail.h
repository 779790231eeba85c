/* Raising and passing on errors inside the library. See docs/errors.md. */
#ifndef TMI_FAIL_H
#define TMI_FAIL_H

#include "taimatsu/base.h"

#define TMI_LIKELY(x) __builtin_expect(!!(x), 1)
#define TMI_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Record an error (first one wins) and return its status. */
tm_status tmi_fail_at(const char *file, int line, tm_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
#define tmi_fail(...) tmi_fail_at(__FILE__, __LINE__, __VA_ARGS__)

/* Room for more about the pending error than its message says (tmi_error_note of autograd/api.h); the thread's own. */
enum { TMI_NOTE_BYTES = 600 };
char *tmi_error_note_buffer(void);

/* Name the operator in the pending error if none is named yet. */
void tmi_error_name_op(const char *op);

/* Callbacks (hooks, custom functions, deleters) run with the record put aside: save clears it, restore puts it back
 * unless the callback left an error of its own, which then wins. */
void tmi_error_save(tm_error *into);
void tmi_error_restore(const tm_error *from);

#define TMI_REQUIRE(cond, ...)                                                                                        \
    do {                                                                                                              \
        if (TMI_UNLIKELY(!(cond))) return tmi_fail(__VA_ARGS__);                                                      \
    } while (0)
/* The same in functions that return a pointer. */
#define TMI_REQUIRE_PTR(cond, ...)                                                                                    \
    do {                                                                                                              \
        if (TMI_UNLIKELY(!(cond))) {                                                                                  \
            tmi_fail(__VA_ARGS__);                                                                                    \
            return NULL;                                                                                              \
        }                                                                                                             \
    } while (0)
#define TMI_TRY(expr)                                                                                                 \
    do {                                                                                                              \
        tm_status tmi_status_ = (expr);                                                                               \
        if (TMI_UNLIKELY(tmi_status_ != TM_OK)) return tmi_status_;                                                   \
    } while (0)
#define TMI_TRY_PTR(expr)                                                                                             \
    do {                                                                                                              \
        if (TMI_UNLIKELY((expr) != TM_OK)) return NULL;                                                               \
    } while (0)

#endif
