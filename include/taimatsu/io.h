/* Files. The safetensors reader checks every rule of the format before a byte of data is used, and maps the file; the writer writes beside the
 * old file and renames, so a reader sees the old file or the new one, whole, whatever happens in between. */
#ifndef TAIMATSU_IO_H
#define TAIMATSU_IO_H

#include "taimatsu/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading. An open file is immutable: several threads may use it */
typedef struct tm_safetensors tm_safetensors;
/* TM_NOT_FOUND, TM_IO, or TM_FORMAT with the reason ("Error while deserializing header: ..."); NULL then. */
TM_API tm_safetensors *tm_safetensors_open(const char *path);
/* The same from memory, which must stay as long as the file object and its tensors: deleter(ctx) runs when the last of them goes. On failure it
 * does not run. */
TM_API tm_safetensors *tm_safetensors_open_memory(void *data, size_t nbytes, void (*deleter)(void *ctx), void *ctx);
TM_API void tm_safetensors_close(tm_safetensors *f);                    /* tensors made from it live on; NULL is fine */
TM_API int64_t tm_safetensors_len(const tm_safetensors *f);
TM_API const char *tm_safetensors_name(const tm_safetensors *f, int64_t i);   /* in file order; borrowed; NULL with TM_INDEX */
/* The tensor of that name: it lies in a private map of the file (loaded lazily; writes do not reach the file). Owned by scope or caller.
 * NULL with TM_NOT_FOUND if absent, TM_NOT_IMPLEMENTED for an element type without a dtype here (F4, F6_E2M3, ...). */
TM_API tm_tensor *tm_safetensors_get(const tm_safetensors *f, const char *name);
TM_API int64_t tm_safetensors_metadata_len(const tm_safetensors *f);
TM_API const char *tm_safetensors_metadata_key(const tm_safetensors *f, int64_t i);
TM_API const char *tm_safetensors_metadata(const tm_safetensors *f, const char *key);  /* borrowed; NULL if absent, no error */

/* ---- writing. keys and values: n_meta strings of metadata (UTF-8). Tensors must be strided, on the CPU, and no two may have the same name;
 * non-contiguous ones are packed. TM_VALUE for bad arguments, TM_IO if the file cannot be written: the old file is untouched then. */
TM_API tm_status tm_safetensors_save(const char *path, int64_t n, const char *const *names, tm_tensor *const *tensors,
                                     int64_t n_meta, const char *const *keys, const char *const *values);

/* ---- parameter lists. Loading copies into the tensors at hand: every name of the list must be in the file with the same shape
 * (TM_NOT_FOUND, TM_SHAPE; nothing is changed then); names that only the file has are ignored. */
TM_API tm_status tm_params_save(const tm_params *p, const char *path);
TM_API tm_status tm_params_load(tm_params *p, const char *path);

#ifdef __cplusplus
}
#endif
#endif
