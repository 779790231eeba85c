/* The thread pool. Work is cut by problem size only, so results never depend on the number of threads.
 * Workers spin for about 100 us, then sleep on a futex; the caller takes part; nested runs are inline; a forked child starts
 * its own workers at first use; the size follows the affinity mask and the cgroup quota, unless TAIMATSU_NUM_THREADS or
 * OMP_NUM_THREADS says otherwise. The caller's modes and its flushing of denormals hold in the workers too. */
#ifndef TMI_POOL_H
#define TMI_POOL_H

#include "taimatsu/base.h"

/* Runs fn(ctx, begin, end) over [0, n) in chunks of `grain` (chunk k is [k*grain, min(n, (k+1)*grain))), taken dynamically from an
 * atomic counter, and returns when all are done. Tasks must not fail: allocate before. One chunk or a nested call runs inline. */
typedef void tmi_range_fn(void *ctx, int64_t begin, int64_t end);
void tmi_parallel_for(int64_t n, int64_t grain, tmi_range_fn *fn, void *ctx);

/* Index of the calling thread inside the current run: 0 (caller) .. tmi_pool_size() - 1. For per-thread scratch only. */
int tmi_pool_thread(void);
int tmi_pool_size(void);

/* Elements per chunk for streaming work of `bytes_per_element`: large enough to pay for a hand-over, whatever the thread count. */
int64_t tmi_grain(int64_t bytes_per_element);

#endif
