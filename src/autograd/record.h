/* Between the recording layer and its neighbours in this folder. */
#ifndef TMI_RECORD_H
#define TMI_RECORD_H

#include "base/alloc.h"
#include "tape.h"

/* trace.c: source lines and anomaly mode. */
extern bool tmi_trace_on;                       /* either is on, anywhere */
tm_status tmi_trace_node(tmi_node *n);          /* remembers where n was recorded */
void tmi_trace_change(tm_tensor *t);            /* ... and where t was changed in place */
const char *tmi_changed_where(const tm_tensor *t); /* the last such place, or NULL */

/* self_reference.c: t has just got `from` as its history; nodes behind it that saved t get an alias instead. */
void tmi_cut_self_reference(tmi_node *from, tm_tensor *t, bool unknown);
tmi_node *tmi_slices_fn(const tmi_node *n);     /* view_history.c: the node whose operator changed the view */

/* variable.c */
void tmi_grad_meta_free(tm_tensor *t);

#endif
