/* A string that grows. After a failed append `ok` is false and the text so far stays valid. */
#ifndef TMI_STRBUF_H
#define TMI_STRBUF_H

#include "taimatsu/base.h"

typedef struct tmi_strbuf {
    char *data;      /* NUL-terminated once anything was appended; NULL before */
    size_t len, cap;
    bool failed;     /* TM_NOMEM recorded */
} tmi_strbuf;

void tmi_str_add(tmi_strbuf *b, const char *s);
void tmi_str_addn(tmi_strbuf *b, const char *s, size_t n);
void tmi_str_addf(tmi_strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tmi_str_free(tmi_strbuf *b);

#endif
