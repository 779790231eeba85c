/* Log lines go to a callback (default: none, or stderr when TAIMATSU_LOG names a level). The library never prints. */
#ifndef TMI_LOGGING_H
#define TMI_LOGGING_H

#include "taimatsu/base.h"

typedef enum tmi_log_level { TMI_LOG_ERROR, TMI_LOG_WARN, TMI_LOG_INFO, TMI_LOG_DEBUG } tmi_log_level;
typedef void tmi_log_fn(void *ctx, tmi_log_level level, const char *message);

void tmi_log_set(tmi_log_fn *fn, void *ctx, tmi_log_level max_level);
void tmi_log(tmi_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
