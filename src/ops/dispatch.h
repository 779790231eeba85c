/* Pieces of the dispatcher that other files of this layer use. */
#ifndef TMI_DISPATCH_H
#define TMI_DISPATCH_H

#include "op.h"

tm_tensor_list *tmi_list_retain(tm_tensor_list *l);
/* Hands a fresh list to the innermost scope, if one is open; returns it. */
tm_tensor_list *tmi_own_list(tm_tensor_list *l);

#endif
