/* Makes the kernels of one element type and their table from pointwise.def. The including file defines TMK_KERNEL(name) (the kernel's name),
 * KERNEL_TABLE (the table's name), COLUMN(F, I, U, B, C) (which flag
 * counts), LOOP(form) and OPERATOR(name). */
#define KERNEL_0(name, form)
#define KERNEL_1(name, form)                                                                                          \
    static void TMK_KERNEL(name)(char *const *data, const int64_t *steps, int64_t n, const void *params) { LOOP(form)(data, steps, n, (tmk_params *)params, OPERATOR(name)); }
#define KERNEL_(flag, name, form) KERNEL_##flag(name, form)
#define KERNEL(flag, name, form) KERNEL_(flag, name, form)
#define P(NAME, name, form, F, I, U, B, C) KERNEL(COLUMN(F, I, U, B, C), name, form)
#include "cpu/pointwise.def"
#undef P
#undef KERNEL
#undef KERNEL_
#undef KERNEL_1
#undef KERNEL_0

#define SLOT_0(name) 0
#define SLOT_1(name) TMK_KERNEL(name)
#define SLOT_(flag, name) SLOT_##flag(name)
#define SLOT(flag, name) SLOT_(flag, name)
tmk_loop *const KERNEL_TABLE[TMK_PW_COUNT] = {
#define P(NAME, name, form, F, I, U, B, C) [TMK_PW_##NAME] = SLOT(COLUMN(F, I, U, B, C), name),
#include "cpu/pointwise.def"
#undef P
};
#undef SLOT
#undef SLOT_
#undef SLOT_1
#undef SLOT_0
#undef COLUMN
#undef LOOP
#undef OPERATOR
#undef KERNEL_TABLE
#undef TMK_KERNEL
