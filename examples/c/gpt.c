/* A byte-level GPT through the C API: the model of examples/gpt, trained, saved and sampled.
 *
 *     build/examples/c/gpt [STEPS [FILE ...]]       default: 100 steps on the Python standard library's sources
 *
 * Writes gpt.safetensors with the names that examples/gpt/model.py uses. */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <taimatsu.h>

enum { LAYERS = 4, HEADS = 4, DIM = 128, CONTEXT = 128, VOCABULARY = 256, BATCH = 16, MAX_TEXT = 12000000 };

/* ---- the model */

typedef struct block {
    tm_nn_layer_norm norm1, norm2;
    tm_nn_linear qkv, out, up, down;
} block;

typedef struct gpt {
    tm_params *params;
    tm_nn_embedding tokens, positions;
    block blocks[LAYERS];
    tm_nn_layer_norm norm;
} gpt;

static void die(void)
{
    const tm_error *e = tm_get_error();
    fprintf(stderr, "%s: %s%s%s\n", tm_status_name(e->status), e->op, *e->op ? ": " : "", e->message);
    exit(1);
}

static void check(tm_status s)
{
    if (s != TM_OK || tm_error_status() != TM_OK) die();
}

static const char *numbered(int i, const char *part)
{
    static char name[64];
    snprintf(name, sizeof name, "blocks.%d.%s", i, part);
    return name;
}

static void make_linear(gpt *m, tm_nn_linear *l, const char *name, int64_t in, int64_t out, double std)
{
    check(tm_nn_linear_init(l, m->params, name, in, out, true));
    check(tm_nn_init_normal(l->weight, 0, std));
    check(tm_nn_init_zeros(l->bias));
}

static void make_block(gpt *m, int i)
{
    block *b = &m->blocks[i];
    double std = 0.02, last = 0.02 / sqrt(2.0 * LAYERS);   /* each block adds to the stream twice: keep its variance near one */
    check(tm_nn_layer_norm_init(&b->norm1, m->params, numbered(i, "norm1"), DIM, true));
    make_linear(m, &b->qkv, numbered(i, "attention.qkv"), DIM, 3 * DIM, std);
    make_linear(m, &b->out, numbered(i, "attention.out"), DIM, DIM, last);
    check(tm_nn_layer_norm_init(&b->norm2, m->params, numbered(i, "norm2"), DIM, true));
    make_linear(m, &b->up, numbered(i, "mlp.0"), DIM, 4 * DIM, std);
    make_linear(m, &b->down, numbered(i, "mlp.2"), 4 * DIM, DIM, last);
}

static void make_gpt(gpt *m)
{
    m->params = tm_params_new();
    check(tm_nn_embedding_init(&m->tokens, m->params, "tokens", VOCABULARY, DIM));
    check(tm_nn_init_normal(m->tokens.weight, 0, 0.02));
    check(tm_nn_embedding_init(&m->positions, m->params, "positions", CONTEXT, DIM));
    check(tm_nn_init_normal(m->positions.weight, 0, 0.02));
    for (int i = 0; i < LAYERS; i++) make_block(m, i);
    check(tm_nn_layer_norm_init(&m->norm, m->params, "norm", DIM, true));
    check(tm_params_add(m->params, "head.weight", m->tokens.weight));   /* tied */
}

/* One of q, k, v: columns [which * DIM, (which + 1) * DIM) as [batch, heads, time, DIM / HEADS]. */
static tm_tensor *heads_of(tm_tensor *qkv, int which, int64_t b, int64_t t)
{
    tm_tensor *part = tm_narrow(qkv, 2, which * DIM, DIM);
    return tm_transpose_int(tm_view(part, (tm_int[]){b, t, HEADS, DIM / HEADS}, 4), 1, 2);
}

static tm_tensor *attention(const block *m, tm_tensor *x, int64_t b, int64_t t)
{
    tm_tensor *qkv = tm_nn_linear_forward(&m->qkv, x);
    tm_tensor *y = tm_scaled_dot_product_attention_full(heads_of(qkv, 0, b, t), heads_of(qkv, 1, b, t), heads_of(qkv, 2, b, t),
                                                        NULL, 0, true, NULL, false);
    y = tm_reshape(tm_transpose_int(y, 1, 2), (tm_int[]){b, t, DIM}, 3);
    return tm_nn_linear_forward(&m->out, y);
}

/* Logits [batch, time, vocabulary]. Errors pass through: a failed operator makes all that follow it do nothing. */
static tm_tensor *forward(const gpt *m, tm_tensor *ids)
{
    int64_t b = tm_tensor_size(ids, 0), t = tm_tensor_size(ids, 1);
    tm_tensor *where = tm_arange(tm_i64(t));
    tm_tensor *x = tm_add(tm_nn_embedding_forward(&m->tokens, ids), tm_nn_embedding_forward(&m->positions, where));
    for (int i = 0; i < LAYERS; i++) {
        const block *k = &m->blocks[i];
        x = tm_add(x, attention(k, tm_nn_layer_norm_forward(&k->norm1, x), b, t));
        tm_tensor *h = tm_gelu(tm_nn_linear_forward(&k->up, tm_nn_layer_norm_forward(&k->norm2, x)));
        x = tm_add(x, tm_nn_linear_forward(&k->down, h));
    }
    return tm_linear(tm_nn_layer_norm_forward(&m->norm, x), m->tokens.weight);
}

/* Mean cross entropy in nats of predicting each next byte. ids: [batch, time + 1]. */
static tm_tensor *loss_of(const gpt *m, tm_tensor *windows)
{
    int64_t t = tm_tensor_size(windows, 1) - 1;
    tm_tensor *logits = forward(m, tm_contiguous(tm_narrow(windows, 1, 0, t)));
    tm_tensor *targets = tm_reshape(tm_narrow(windows, 1, 1, t), (tm_int[]){-1}, 1);
    return tm_cross_entropy_loss(tm_view(logits, (tm_int[]){-1, VOCABULARY}, 2), targets);
}

/* ---- the text */

static unsigned char text[MAX_TEXT];
static int64_t text_len;

static void read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return;
    text_len += (int64_t)fread(text + text_len, 1, (size_t)(MAX_TEXT - text_len), f);
    fclose(f);
}

static void read_text(int n, char **paths)
{
    glob_t found = {0};
    for (int i = 0; i < n; i++) read_file(paths[i]);
    if (n == 0) {
        glob("/usr/lib/python3*/*.py", 0, NULL, &found);
        glob("/usr/local/lib/python3*/*.py", GLOB_APPEND, NULL, &found);
        for (size_t i = 0; i < found.gl_pathc; i++) read_file(found.gl_pathv[i]);
        globfree(&found);
    }
    if (text_len < 10 * CONTEXT) {
        fprintf(stderr, "no text to learn from: give some files\n");
        exit(1);
    }
}

/* [BATCH, CONTEXT + 1] bytes at random places of text[from, to). */
static tm_tensor *random_windows(int64_t from, int64_t to)
{
    int64_t ids[BATCH * (CONTEXT + 1)];
    tm_tensor *starts = tm_randint(to - from - CONTEXT - 1, (tm_int[]){BATCH}, 1);
    if (!starts) return NULL;
    const int64_t *at = tm_tensor_data(starts);
    for (int i = 0; i < BATCH; i++)
        for (int k = 0; k <= CONTEXT; k++) ids[i * (CONTEXT + 1) + k] = text[from + at[i] + k];
    return tm_tensor_from_data(2, (int64_t[]){BATCH, CONTEXT + 1}, TM_I64, ids);
}

/* What the best guess costs that knows only how often each byte occurs. */
static double unigram_entropy(int64_t from, int64_t to)
{
    int64_t count[256] = {0};
    double entropy = 0, n = (double)(to - from);
    for (int64_t i = from; i < to; i++) count[text[i]]++;
    for (int i = 0; i < 256; i++)
        if (count[i]) entropy -= (double)count[i] / n * log((double)count[i] / n);
    return entropy;
}

/* ---- training, judging, writing */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double value_of(tm_tensor *t)
{
    tm_scalar s;
    check(tm_tensor_item(t, &s));
    return s.v.f;
}

static double learning_rate(int step, int steps, double peak)
{
    int warm = steps < 100 ? steps / 4 + 1 : 50;
    if (step < warm) return peak * (step + 1) / warm;
    return peak * (0.1 + 0.45 * (1 + cos(3.14159265358979 * (step - warm) / (steps - warm + 1))));
}

static void train(gpt *m, int steps, int64_t split)
{
    tm_adamw_options options = tm_adamw_defaults();
    options.beta2 = 0.95;
    options.weight_decay = 0.1;
    tm_optimizer *opt = tm_adamw_new(m->params, options);
    check(tm_optimizer_set_vector_decay(opt, 0));
    double start = seconds();
    for (int step = 0; step < steps; step++) {
        tm_scope *scope = tm_scope_open();   /* everything made in a step dies with it */
        tm_tensor *loss = loss_of(m, random_windows(0, split));
        check(tm_optimizer_zero_grad(opt));
        check(tm_backward(loss));
        check(tm_params_clip_grad_norm(m->params, 1.0, NULL));
        check(tm_optimizer_set_lr(opt, learning_rate(step, steps, 3e-3)));
        check(tm_optimizer_step(opt));
        if (step % 10 == 9 || step == steps - 1)
            printf("step %d/%d, loss %.3f, %.0f tokens/s\n", step + 1, steps, value_of(loss), (step + 1) * BATCH * CONTEXT / (seconds() - start));
        fflush(stdout);
        tm_scope_close(scope);
    }
    tm_optimizer_free(opt);
}

static double validate(const gpt *m, int64_t split)
{
    double total = 0;
    for (int i = 0; i < 8; i++) {
        tm_scope *scope = tm_scope_open();
        total += value_of(loss_of(m, random_windows(split, text_len)));
        tm_scope_close(scope);
    }
    return total / 8;
}

static void generate(const gpt *m, const char *prompt, int count)
{
    int64_t ids[4096], n = (int64_t)strlen(prompt);
    for (int64_t i = 0; i < n; i++) ids[i] = (unsigned char)prompt[i];
    printf("\n%s", prompt);
    for (int k = 0; k < count && n < 4096; k++) {
        tm_scope *scope = tm_scope_open();
        int64_t t = n < CONTEXT ? n : CONTEXT;
        tm_tensor *logits = forward(m, tm_tensor_from_data(2, (int64_t[]){1, t}, TM_I64, ids + n - t));
        tm_tensor *last = tm_select_int(tm_select_int(logits, 0, 0), 0, -1);
        tm_tensor *choice = tm_multinomial(tm_softmax_int(tm_div_scalar(last, tm_f64(0.8)), -1), 1);
        tm_scalar id;
        check(tm_tensor_item(choice, &id));
        ids[n++] = id.v.i;
        putchar((int)id.v.i);
        tm_scope_close(scope);
    }
    printf("\n\n");
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 100;
    gpt model;
    read_text(argc > 2 ? argc - 2 : 0, argv + 2);
    int64_t split = text_len / 10 * 9;
    tm_manual_seed(0);
    make_gpt(&model);
    printf("%.2f M parameters, %.1f MB of text\n", (double)tm_params_numel(model.params) / 1e6, (double)text_len / 1e6);
    train(&model, steps, split);
    tm_set_grad_enabled(false);
    printf("validation loss %.3f nats per byte; 1-gram entropy of the text %.3f\n", validate(&model, split), unigram_entropy(split, text_len));
    generate(&model, "def ", 300);
    check(tm_params_save(model.params, "gpt.safetensors"));
    printf("checkpoint: gpt.safetensors\n");
    tm_params_free(model.params);
    return 0;
}
