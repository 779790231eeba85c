/* The list of named parameters, as layers, optimisers and files see it. */
#ifndef TMI_PARAMS_H
#define TMI_PARAMS_H

#include "base/map.h"
#include "base/vec.h"
#include "core/tensor_state.h"
#include "taimatsu/nn.h"

typedef struct tmi_param {
    char *name;      /* owned */
    tm_tensor *t;    /* owned reference */
    bool tied;       /* stands in the list under an earlier name too */
} tmi_param;

struct tm_params {
    TMI_VEC(tmi_param) items;
    tmi_map by_name, by_tensor;   /* value: index + 1 */
};

/* No gradient is recorded between the two; the scope frees what the lines between them make. */
typedef struct tmi_quiet {
    bool grad_was;
    tm_scope *scope;
} tmi_quiet;
tm_status tmi_quiet_begin(tmi_quiet *q);   /* refuses while an error is pending; nothing to end then */
tm_status tmi_quiet_end(tmi_quiet *q);     /* the pending status */

#endif
