/* Parameter lists to and from safetensors files. */
#include <string.h>

#include "base/alloc.h"
#include "nn/params.h"
#include "taimatsu/io.h"
#include "taimatsu/ops.h"

/* Arrays of names and tensors, tied ones once. */
static int64_t collect(const tm_params *p, const char **names, tm_tensor **tensors)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->items.len; i++) {
        if (p->items.data[i].tied) continue;
        names[n] = p->items.data[i].name;
        tensors[n++] = p->items.data[i].t;
    }
    return n;
}

tm_status tm_params_save(const tm_params *p, const char *path)
{
    size_t bytes = (size_t)p->items.len * sizeof(void *);
    const char *key = "format", *value = "pt";
    if (tm_error_status() != TM_OK) return tm_error_status();
    const char **names = tmi_calloc(bytes);
    tm_tensor **tensors = names ? tmi_calloc(bytes) : NULL;
    tm_status s = TM_NOMEM;
    if (tensors) {
        int64_t n = collect(p, names, tensors);
        s = tm_safetensors_save(path, n, names, tensors, 1, &key, &value);
        tmi_free(tensors, bytes);
    }
    if (names) tmi_free(names, bytes);
    return s;
}

static tm_status check_param(const tm_safetensors *f, const tmi_param *p)
{
    tm_tensor *t = tm_safetensors_get(f, p->name);
    if (!t) return tm_error_status();
    char want[160], have[160];
    tmi_format_sizes(want, sizeof want, tm_tensor_ndim(p->t), tm_tensor_sizes(p->t));
    tmi_format_sizes(have, sizeof have, tm_tensor_ndim(t), tm_tensor_sizes(t));
    TMI_REQUIRE(!strcmp(want, have), TM_SHAPE, "size mismatch for %s: the file has shape %s, the parameter %s", p->name, have, want);
    return TM_OK;
}

static tm_status load_all(tm_params *p, const tm_safetensors *f)
{
    for (int64_t i = 0; i < p->items.len; i++)
        if (!p->items.data[i].tied) TMI_TRY(check_param(f, &p->items.data[i]));
    for (int64_t i = 0; i < p->items.len; i++)
        if (!p->items.data[i].tied) tm_copy_inplace(p->items.data[i].t, tm_safetensors_get(f, p->items.data[i].name));
    return tm_error_status();
}

tm_status tm_params_load(tm_params *p, const char *path)
{
    tmi_quiet q;
    TMI_TRY(tmi_quiet_begin(&q));
    tm_safetensors *f = tm_safetensors_open(path);
    if (f) load_all(p, f);
    tm_safetensors_close(f);
    return tmi_quiet_end(&q);
}
