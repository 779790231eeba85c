/* The thread's error record and status texts. The record is not part of tmi_tls: that struct lives in the small static block of
 * thread-local memory, and a kilobyte there could keep the library from being opened at run time. */
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "thread_state.h"

__thread tmi_thread_state tmi_tls __attribute__((tls_model("initial-exec"))) = {.grad_enabled = true};
static __thread tm_error record;

const char *tm_status_name(tm_status status)
{
    switch (status) {
#define NAME_CASE(name, number, text) case TM_##name: return "TM_" #name;
        TM_STATUS_MAP(NAME_CASE)
#undef NAME_CASE
    }
    return "TM_UNKNOWN";
}

const char *tm_status_text(tm_status status)
{
    switch (status) {
#define TEXT_CASE(name, number, text) case TM_##name: return text;
        TM_STATUS_MAP(TEXT_CASE)
#undef TEXT_CASE
    }
    return "unknown status";
}

const char *tm_version(void) { return TMI_VERSION; }

const tm_error *tm_get_error(void) { return &record; }

tm_status tm_error_status(void) { return (tm_status)tmi_tls.error_pending; }

void tm_error_clear(void)
{
    if (!tmi_tls.error_pending) return;
    tmi_tls.error_pending = TM_OK;
    record.status = TM_OK;
    record.message[0] = record.op[0] = 0;
    record.file = NULL;
    record.line = 0;
}

/* A message too long for the record is cut at a character boundary, so that it stays valid UTF-8. */
static void drop_partial_character(char *s)
{
    size_t n = strlen(s), i = n;
    while (i > 0 && ((unsigned char)s[i - 1] & 0xC0) == 0x80) i--;
    if (i == 0) return;
    unsigned char lead = (unsigned char)s[i - 1];
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (n - (i - 1) < need) s[i - 1] = 0;
}

static tm_status record_error(const char *file, int line, tm_status status, const char *format, va_list args)
{
    if (tmi_tls.error_pending || status == TM_OK) return status;
    int n = vsnprintf(record.message, sizeof record.message, format, args);
    if (n >= (int)sizeof record.message) drop_partial_character(record.message);
    record.op[0] = 0;
    record.status = status;
    record.file = file;
    record.line = line;
    tmi_tls.error_pending = status;
    return status;
}

tm_status tmi_fail_at(const char *file, int line, tm_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tm_status s = record_error(file, line, status, format, args);
    va_end(args);
    return s;
}

tm_status tm_error_set(tm_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tm_status s = record_error(NULL, 0, status, format, args);
    va_end(args);
    return s;
}

void tmi_error_name_op(const char *op)
{
    if (!tmi_tls.error_pending || record.op[0]) return;
    strncpy(record.op, op, sizeof record.op - 1);
    record.op[sizeof record.op - 1] = 0;
}

void tmi_error_save(tm_error *into)
{
    if (!tmi_tls.error_pending) {
        into->status = TM_OK;
        return;
    }
    *into = record;
    tm_error_clear();
}

void tmi_error_restore(const tm_error *from)
{
    if (from->status == TM_OK || tmi_tls.error_pending) return;
    record = *from;
    tmi_tls.error_pending = from->status;
}
