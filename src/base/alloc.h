/* Host memory. Every allocation of the library goes through here: counted, reused without page faults, and able to fail on
 * the N-th call for tests. */
#ifndef TMI_ALLOC_H
#define TMI_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* Memory for tensor data: 64-byte aligned (2 MiB-aligned huge-page arenas from 1 MiB on), kept and reused after free.
 * nbytes 0 gives a valid unique pointer. NULL with TM_NOMEM recorded when memory is exhausted. */
void *tmi_data_alloc(size_t nbytes);
void tmi_data_free(void *p, size_t nbytes);

/* Small objects (structs, lists): at least 16-byte aligned; freed with the size they were asked with. NULL with TM_NOMEM recorded. */
void *tmi_alloc(size_t nbytes);
void *tmi_calloc(size_t nbytes);
void *tmi_realloc(void *p, size_t old_nbytes, size_t new_nbytes);
void tmi_free(void *p, size_t nbytes);
char *tmi_strdup(const char *s);   /* free with tmi_free(p, strlen(p) + 1) */

/* Tests only: the n-th allocation from now (1 = the next) fails, and with `sticky` all after it; 0 turns it off. */
void tmi_alloc_fail_at(int64_t n, int sticky);
int64_t tmi_alloc_count(void);     /* allocations so far, data and small */

#endif
