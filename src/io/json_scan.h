/* A strict scanner for JSON text (RFC 8259): the caller says what it expects next. Nothing is read past `end`, nesting is bounded. */
#ifndef TMI_JSON_SCAN_H
#define TMI_JSON_SCAN_H

#include "base/strbuf.h"

typedef struct tmi_json {
    const char *begin, *p, *end;
    const char *fault;   /* NULL, or what was wrong at p; a static string. Once set, every call fails */
} tmi_json;

static inline tmi_json tmi_json_open(const char *text, size_t n) { return (tmi_json){text, text, text + n, NULL}; }

/* The next character that is no white space, 0 at the end. It is not taken. */
char tmi_json_peek(tmi_json *j);
/* Takes `c` after white space, or fails. */
bool tmi_json_take(tmi_json *j, char c);
/* Inside `{...}` or `[...]` that was opened: true if another member follows (and its comma was taken), false at the closing bracket (taken) or
 * on a fault. `first` starts as true and is cleared. */
bool tmi_json_next(tmi_json *j, char close, bool *first);
/* A string, unescaped into `out` (emptied first). Fails on control characters, lone surrogates and U+0000, which C strings cannot hold. */
bool tmi_json_string(tmi_json *j, tmi_strbuf *out);
/* A whole number that fits 64 bits without a sign: digits, no leading zero, no fraction or exponent. */
bool tmi_json_unsigned(tmi_json *j, uint64_t *out);
/* Any value, at most `depth` levels deep. */
bool tmi_json_skip(tmi_json *j, int depth);
/* Only white space is left. */
bool tmi_json_done(tmi_json *j);

/* Length of the valid UTF-8 prefix of s[0..n): n if all is well. */
size_t tmi_utf8_valid(const char *s, size_t n);
/* Appends s as a JSON string, quotes included. */
void tmi_json_quote(tmi_strbuf *out, const char *s);

#endif
