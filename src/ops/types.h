/* Type rules that `type: rule(args)` lines of operators with a kernel or body name. Each sets m[0].dtype. */
#ifndef TMI_TYPES_H
#define TMI_TYPES_H

#include "op.h"

tm_status tmi_type_set(tmi_meta *m, tm_dtype dtype);                              /* dtype if given, else the preset */
tm_status tmi_type_bool(tmi_meta *m);
tm_status tmi_type_int64(tmi_meta *m);
tm_status tmi_type_floating(tmi_meta *m, const tm_tensor *t);                     /* integers become the default float */
tm_status tmi_type_sum(tmi_meta *m, const tm_tensor *t, tm_dtype dtype);          /* dtype if given; bool and integers become int64 */
tm_status tmi_type_promote(tmi_meta *m, const tm_tensor *a, const tm_tensor *b);
tm_status tmi_type_promote_list(tmi_meta *m, tm_tensor *const *t, int64_t n);
tm_status tmi_type_real(tmi_meta *m, const tm_tensor *t);
tm_status tmi_type_default(tmi_meta *m, tm_dtype dtype);                          /* dtype if given, else the default float */

#endif
