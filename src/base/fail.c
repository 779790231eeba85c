/* The thread's error record and status texts.
 *
 * Only a pointer to the record is thread-local: a library whose thread-locals are read without a call has all of them in the small
 * static block that the loader keeps for libraries opened at run time, and a kilobyte there can keep it from being opened at all. The
 * record is allocated by a thread's first error; should that fail, one shared record says so. */
#include "fail.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thread_state.h"

__thread tmi_thread_state tmi_tls __attribute__((tls_model("initial-exec"))) = {.grad_enabled = true};

typedef struct thread_record {
    tm_error error;
    char note[TMI_NOTE_BYTES];
} thread_record;
static __thread thread_record *own;
static thread_record emergency;
static const tm_error no_error;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_record(void *p)
{
    own = NULL;
    free(p);
}
static void make_key(void) { pthread_key_create(&exit_key, free_record); }

static thread_record *record_of(void)
{
    if (TMI_LIKELY(own != NULL)) return own;
    pthread_once(&once, make_key);
    thread_record *r = calloc(1, sizeof *r);
    if (!r) return &emergency;
    pthread_setspecific(exit_key, r);
    return own = r;
}

char *tmi_error_note_buffer(void) { return record_of()->note; }

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

const tm_error *tm_get_error(void) { return own || tmi_tls.error_pending ? &record_of()->error : &no_error; }

tm_status tm_error_status(void) { return (tm_status)tmi_tls.error_pending; }

void tm_error_clear(void)
{
    if (!tmi_tls.error_pending) return;
    tm_error *record = &record_of()->error;
    tmi_tls.error_pending = TM_OK;
    record->status = TM_OK;
    record->message[0] = record->op[0] = 0;
    record->file = NULL;
    record->line = 0;
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
    tm_error *record = &record_of()->error;
    int n = vsnprintf(record->message, sizeof record->message, format, args);
    if (n >= (int)sizeof record->message) drop_partial_character(record->message);
    record->op[0] = 0;
    record->status = status;
    record->file = file;
    record->line = line;
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
    tm_error *record = &record_of()->error;
    if (!tmi_tls.error_pending || record->op[0]) return;
    strncpy(record->op, op, sizeof record->op - 1);
    record->op[sizeof record->op - 1] = 0;
}

void tmi_error_save(tm_error *into)
{
    if (!tmi_tls.error_pending) {
        into->status = TM_OK;
        return;
    }
    *into = record_of()->error;
    tm_error_clear();
}

void tmi_error_restore(const tm_error *from)
{
    if (from->status == TM_OK || tmi_tls.error_pending) return;
    record_of()->error = *from;
    tmi_tls.error_pending = from->status;
}
