/* Runs of 4 KiB pages inside 2 MiB-aligned huge-page arenas: what the allocator's caches and all large blocks are cut from.
 * Not thread-safe: the allocator calls it under its lock. */
#ifndef TMI_PAGE_HEAP_H
#define TMI_PAGE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TMI_PAGE = 4096 };

/* nbytes rounded up to pages; NULL when the system gives no more (nothing recorded). *fresh: memory that was never handed out before. */
void *tmi_pages_take(size_t nbytes, bool *fresh);
void tmi_pages_give(void *p, size_t nbytes);
/* Hands free memory back to the system. */
void tmi_pages_trim(void);
/* Bytes held from the system. */
int64_t tmi_pages_reserved(void);

#endif
