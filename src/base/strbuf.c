#include "strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"

static bool reserve(tmi_strbuf *b, size_t more)
{
    if (b->failed) return false;
    if (b->cap - b->len > more) return true;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < b->len + more + 1) cap = b->len + more + 1;
    char *p = tmi_realloc(b->data, b->cap, cap);
    if (!p) {
        b->failed = true;
        return false;
    }
    b->data = p;
    b->cap = cap;
    return true;
}

void tmi_str_addn(tmi_strbuf *b, const char *s, size_t n)
{
    if (!reserve(b, n)) return;
    memcpy(b->data + b->len, s, n);
    b->len += n;
    b->data[b->len] = 0;
}

void tmi_str_add(tmi_strbuf *b, const char *s) { tmi_str_addn(b, s, strlen(s)); }

void tmi_str_addf(tmi_strbuf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n >= 0 && reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void tmi_str_free(tmi_strbuf *b)
{
    tmi_free(b->data, b->cap);
    *b = (tmi_strbuf){0};
}
