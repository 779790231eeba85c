/* What one small call costs from C: nanoseconds per call, best of several samples. Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <taimatsu.h>

enum { CALLS = 20000, SAMPLES = 15, GRAPHS = 2000 };

static tm_tensor *x, *y, *w, *b, *batch, *weight, *bias;
static tm_tensor *graphs[GRAPHS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void add_one(void) { tm_release(tm_add(x, y)); }
static void linear(void) { tm_release(tm_linear_full(batch, weight, bias)); }
static void metadata(void) { tm_release(tm_t(weight)); }

/* tanh(x * w + b): three nodes and two leaves. */
static tm_tensor *graph(void)
{
    tm_tensor *p = tm_mul(x, w), *s = tm_add(p, b), *r = tm_tanh(s);
    tm_release(p);
    tm_release(s);
    return r;
}

static double best_call(void (*call)(void))
{
    double best = 1e30;
    for (int k = 0; k < SAMPLES; k++) {
        double start = now();
        for (int i = 0; i < CALLS; i++) call();
        double ns = (now() - start) / CALLS;
        if (ns < best) best = ns;
    }
    return best;
}

static void best_graph(double *forward, double *backward)
{
    *forward = *backward = 1e30;
    for (int k = 0; k < SAMPLES; k++) {
        double start = now();
        for (int i = 0; i < GRAPHS; i++) graphs[i] = graph();
        double middle = now();
        for (int i = 0; i < GRAPHS; i++) tm_backward(graphs[i]);
        double end = now();
        for (int i = 0; i < GRAPHS; i++) tm_release(graphs[i]);
        if ((middle - start) / GRAPHS < *forward) *forward = (middle - start) / GRAPHS;
        if ((end - middle) / GRAPHS < *backward) *backward = (end - middle) / GRAPHS;
    }
}

static tm_tensor *ones(int ndim, const int64_t *sizes, bool grad)
{
    tm_tensor *t = tm_ones(sizes, ndim);
    if (!t || tm_tensor_set_requires_grad(t, grad) != TM_OK) {
        fprintf(stderr, "%s\n", tm_get_error()->message);
        exit(1);
    }
    return t;
}

int main(void)
{
    double forward, backward;
    x = ones(1, (int64_t[]){1}, false);
    y = ones(1, (int64_t[]){1}, false);
    w = ones(1, (int64_t[]){1}, true);
    b = ones(1, (int64_t[]){1}, true);
    batch = ones(2, (int64_t[]){1, 8}, false);
    weight = ones(2, (int64_t[]){8, 8}, false);
    bias = ones(1, (int64_t[]){8}, false);
    printf("{\"add_1\": %.1f, ", best_call(add_one));
    printf("\"t\": %.1f, ", best_call(metadata));
    printf("\"linear_8_8\": %.1f, ", best_call(linear));
    best_graph(&forward, &backward);
    printf("\"graph_3_forward\": %.1f, \"graph_3_backward\": %.1f}\n", forward, backward);
    return tm_error_status() != TM_OK;
}
