#include "logging.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct { tmi_log_fn *fn; void *ctx; int max; } sink = {NULL, NULL, -1};

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static void to_stderr(void *ctx, tmi_log_level level, const char *message)
{
    (void)ctx;
    char line[1200];
    int n = snprintf(line, sizeof line, "taimatsu %s: %s\n", level_names[level], message);
    if (n >= (int)sizeof line) n = (int)sizeof line - 1;
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0) return;   /* nowhere to report it */
}

static void read_environment(void)
{
    const char *want = getenv("TAIMATSU_LOG");
    if (!want || sink.fn) return;
    for (int i = 0; i < 4; i++)
        if (strcmp(want, level_names[i]) == 0) {
            sink.fn = to_stderr;
            sink.max = i;
        }
}

void tmi_log_set(tmi_log_fn *fn, void *ctx, tmi_log_level max_level)
{
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    sink.fn = fn;
    sink.ctx = ctx;
    sink.max = fn ? (int)max_level : -1;
    pthread_mutex_unlock(&lock);
}

void tmi_log(tmi_log_level level, const char *format, ...)
{
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    tmi_log_fn *fn = (int)level <= sink.max ? sink.fn : NULL;
    void *ctx = sink.ctx;
    pthread_mutex_unlock(&lock);
    if (!fn) return;
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fn(ctx, level, message);
}
