/* What error messages say beyond the values: source lines of nodes and in-place changes, and anomaly mode's tracebacks. Both cost nothing
 * but one test of a flag while they are off. */
#include <pthread.h>

#include "api.h"
#include "record.h"

bool tmi_trace_on;
static bool lines_on, anomaly_on, anomaly_nan;

static void update(void) { tmi_trace_on = lines_on || anomaly_on; }

bool tmi_set_source_lines(bool on)
{
    bool was = lines_on;
    lines_on = on;
    update();
    return was;
}

void tmi_set_anomaly(bool on, bool check_nan)
{
    anomaly_on = on;
    anomaly_nan = check_nan;
    update();
}

bool tmi_anomaly_enabled(void) { return anomaly_on; }
bool tmi_anomaly_checks_nan(void) { return anomaly_on && anomaly_nan; }

static const char *source_line(void)
{
    if (!tmi_glue.where) return NULL;
    tmi_call_out c;
    tmi_call_out_begin(&c);
    const char *line = tmi_glue.where();
    tmi_call_out_end(&c);
    return line;
}

tm_status tmi_trace_node(tmi_node *n)
{
    n->where = source_line();
    if (!anomaly_on || !tmi_glue.capture) return TM_OK;
    tmi_call_out c;
    tmi_call_out_begin(&c);
    n->anomaly = tmi_glue.capture();
    tmi_call_out_end(&c);
    return TM_OK;
}

/* The latest in-place changes, by version counter: enough for an error message, without a field in every tensor. */
enum { CHANGES = 1024 };
static struct change { const void *counter; const char *where; } changes[CHANGES];
static uint64_t next_change;
static pthread_mutex_t changes_lock = PTHREAD_MUTEX_INITIALIZER;

void tmi_trace_change(tm_tensor *t)
{
    const char *line = lines_on ? source_line() : NULL;
    if (!line) return;
    pthread_mutex_lock(&changes_lock);
    changes[next_change++ % CHANGES] = (struct change){(const void *)t->version, line};
    pthread_mutex_unlock(&changes_lock);
}

const char *tmi_changed_where(const tm_tensor *t)
{
    const char *found = NULL;
    pthread_mutex_lock(&changes_lock);
    for (uint64_t k = next_change; k > 0 && next_change - k < CHANGES && !found; k--)
        if (changes[(k - 1) % CHANGES].counter == (const void *)t->version) found = changes[(k - 1) % CHANGES].where;
    pthread_mutex_unlock(&changes_lock);
    return found;
}
