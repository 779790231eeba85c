/* The safetensors format: 8 bytes little-endian header length N, N bytes of JSON, then the tensors' bytes, packed. */
#ifndef TMI_SAFETENSORS_H
#define TMI_SAFETENSORS_H

#include "core/tensor_state.h"

enum { TMI_ST_MAX_HEADER = 100000000 };

/* The format's element types. `dtype` is TM_DTYPE_COUNT where this library has no such type. */
typedef struct tmi_st_type {
    const char *name;
    uint8_t dtype;
    uint8_t bits;
} tmi_st_type;
extern const tmi_st_type tmi_st_types[];
const tmi_st_type *tmi_st_type_named(const char *name);      /* NULL if the format has no such type */
const tmi_st_type *tmi_st_type_of(tm_dtype dtype);           /* NULL if the format cannot hold it */

#endif
