/* What hangs on the dispatcher's joints later, in its smallest form: a wrapper tensor below autograd, vmap above it, and a captured matrix product
 * with its backward. Each uses nothing but the layer tables and the boxed convention. */
#include "harness.h"

#include "autograd/tape.h"
#include "op_ids.h"
#include "taimatsu/autograd.h"

struct tmi_ext {
    tm_tensor *inner;   /* owned: the local shard, or the batch */
    int value;          /* capture: which value this is */
};

static void free_ext(tm_tensor *t)
{
    tm_release(t->ext->inner);
    tmi_free(t->ext, sizeof *t->ext);
    t->ext = NULL;
}

/* A tensor without data of its own that stands for `inner`. */
static tm_tensor *wrap(tm_tensor *inner, int ndim, const int64_t *sizes, uint32_t flags)
{
    tm_tensor *t = tmi_tensor_new(ndim, sizes, NULL, inner->dtype, (tm_device){TM_META, -1});
    assert_made(t);
    t->ext = tmi_calloc(sizeof *t->ext);
    tmi_retain(inner);
    t->ext->inner = inner;
    t->flags |= flags;
    return t;
}

static void unwrap_args(const tmi_op *op, const tmi_value *args, tmi_value *plain)
{
    memcpy(plain, args, op->n_args * sizeof *plain);
    for (int i = 0; i < op->n_args; i++)
        if (plain[i].tag == TMI_V_TENSOR && plain[i].u.t->ext) plain[i].u.t = plain[i].u.t->ext->inner;
}

/* ---------------------------------------------------------------- a wrapper, as a distributed tensor is one */

static char seen[256];

static tm_status sharded(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form)
{
    tmi_value plain[TMI_MAX_ARGS];
    strcat(strcat(seen, op->name), " ");
    unwrap_args(op, args, plain);
    tm_status status = tmi_run(op, plain, out, form);
    for (int i = 0; status == TM_OK && i < out->n; i++) {
        tm_tensor *inner = out->t[i];
        out->t[i] = wrap(inner, inner->ndim, inner->sizes, TMI_INTERCEPTED);
        tm_release(inner);
    }
    return status;
}

static void test_wrapper_gets_grad_fn(void **state)
{
    (void)state;
    tm_tensor *x = make_f32((float[]){1, 2, 3, 4}, SIZES(2, 2)), *w = make_f32((float[]){1, 0, 2, 1}, SIZES(2, 2));
    tm_tensor *dx = wrap(x, 2, x->sizes, TMI_INTERCEPTED), *dw = wrap(w, 2, w->sizes, TMI_INTERCEPTED);
    tmi_layers.intercept = sharded;
    seen[0] = 0;
    assert_ok(tm_tensor_set_requires_grad(dw, true));
    tm_tensor *y = tm_mm(dx, dw), *s = tm_sum(y);
    assert_made(s);
    assert_string_equal(seen, "mm sum ");
    assert_non_null(tmi_grad_fn_of(s));                /* autograd lies above interception */
    assert_ok(tm_backward_full(1, &s, NULL, false, false));
    tm_tensor *grad = tm_tensor_grad(dw);
    assert_made(grad);
    assert_non_null(grad->ext);                        /* the gradient is a wrapper too: backward ran through the same door */
    assert_f32(grad->ext->inner, (float[]){4, 4, 6, 6}, 4, 1e-6);
    tmi_layers.intercept = NULL;
    tm_release(s), tm_release(y), tm_release(dx), tm_release(dw), tm_release(x), tm_release(w);
}

/* ---------------------------------------------------------------- vmap above autograd */

/* One level of batching over dim 0, with the rule of pointwise operators (line the batch up in front) and of `sum` (keep the batch). */
static tm_status batched(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form)
{
    tmi_value plain[TMI_MAX_ARGS];
    tm_tensor *batch = NULL;
    unwrap_args(op, args, plain);
    for (int i = 0; i < op->n_args && !batch; i++)
        if (args[i].tag == TMI_V_TENSOR && args[i].u.t->ext) batch = args[i].u.t;
    uint32_t modes = tmi_tls.modes;
    tmi_tls.modes &= ~(uint32_t)TMI_MODE_TRANSFORM;     /* a level below */
    tm_status status;
    if (op->id == TMI_ID_SUM && batch) {
        tm_int dims[8];
        for (int i = 0; i < batch->ndim; i++) dims[i] = i + 1;
        const tmi_value rows[4] = {plain[0], tmi_v_ints(dims, batch->ndim), tmi_v_bool(false), tmi_v_none()};
        status = tmi_call(&tmi_ops[TMI_ID_SUM_DIM_INTLIST], rows, out, form);
    } else {
        status = tmi_call(op, plain, out, form);
    }
    tmi_tls.modes = modes;
    for (int i = 0; batch && status == TM_OK && i < out->n; i++) {
        tm_tensor *inner = out->t[i];
        out->t[i] = wrap(inner, inner->ndim - 1, inner->sizes + 1, 0);
        tm_release(inner);
    }
    return status;
}

/* d/dx of sum over the batch of vmap(v -> sum(v * v * v)). */
static void test_grad_of_vmap(void **state)
{
    (void)state;
    tm_tensor *x = make_f32((float[]){1, 2, 3, 4, 5, 6}, SIZES(3, 2));
    assert_ok(tm_tensor_set_requires_grad(x, true));
    tmi_layers.transform = batched;
    tmi_tls.modes |= TMI_MODE_TRANSFORM;
    tm_tensor *v = wrap(x, 1, x->sizes + 1, 0);
    tm_tensor *square = tm_mul(v, v), *cube = tm_mul(square, v), *each = tm_sum(cube);
    assert_made(each);
    assert_int_equal(each->ndim, 0);                    /* the function sees one element of the batch */
    tmi_tls.modes &= ~(uint32_t)TMI_MODE_TRANSFORM;
    tm_tensor *rows = tm_retain(each->ext->inner);
    assert_f32(rows, (float[]){9, 91, 341}, 3, 1e-6);
    tm_tensor *total = tm_sum(rows), *grad = NULL;
    assert_ok(tm_grad(1, &total, NULL, 1, &x, false, false, false, &grad));
    assert_f32(grad, (float[]){3, 12, 27, 48, 75, 108}, 6, 1e-6);
    tmi_layers.transform = NULL;
    tm_release(grad), tm_release(total), tm_release(rows), tm_release(each), tm_release(cube), tm_release(square), tm_release(v), tm_release(x);
}

/* ---------------------------------------------------------------- capture */

typedef struct step {
    const tmi_op *op;
    tmi_value args[TMI_MAX_ARGS];
    int values[TMI_MAX_ARGS];       /* value number of each tensor argument, -1 for the rest */
    int first_result;
    tm_int ints[TMI_MAX_ARGS][8];   /* numbers of list arguments outlive the call */
} step;
static step graph[64];
static int n_steps, n_values;

static void number(tm_tensor *t)
{
    t->ext = tmi_calloc(sizeof *t->ext);
    t->ext->value = n_values++;
    t->flags |= TMI_INTERCEPTED;
}

/* Records the call and answers with meta tensors: shapes are known, values are not. */
static tm_status captured(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form)
{
    step *s = &graph[n_steps++];
    s->op = op;
    memcpy(s->args, args, op->n_args * sizeof *args);
    for (int i = 0; i < op->n_args; i++) {
        s->values[i] = args[i].tag == TMI_V_TENSOR ? args[i].u.t->ext->value : -1;
        if (args[i].tag == TMI_V_INTS) s->args[i].u.ints = memcpy(s->ints[i], args[i].u.ints, args[i].len * sizeof(tm_int));
    }
    uint32_t modes = tmi_tls.modes;
    tmi_layer_fn *self = tmi_layers.intercept;
    tmi_layers.intercept = NULL;
    tmi_tls.modes &= ~(uint32_t)TMI_MODE_CAPTURE;
    tm_status status = tmi_run(op, args, out, form);
    tmi_layers.intercept = self;
    tmi_tls.modes = modes;
    s->first_result = n_values;
    for (int i = 0; status == TM_OK && i < out->n; i++) number(out->t[i]);
    return status;
}

static void replay(tm_tensor **values)
{
    for (int i = 0; i < n_steps; i++) {
        step *s = &graph[i];
        tmi_value args[TMI_MAX_ARGS];
        tmi_out out;
        memcpy(args, s->args, sizeof args);
        for (int j = 0; j < s->op->n_args; j++)
            if (s->values[j] >= 0) args[j].u.t = values[s->values[j]];
        assert_ok(tmi_call(s->op, args, &out, TMI_FORM_PLAIN));
        for (int j = 0; j < out.n; j++) values[s->first_result + j] = out.t[j];
    }
}

static void test_captured_matmul_with_backward(void **state)
{
    (void)state;
    tm_device meta = {TM_META, -1};
    tm_tensor *a = tmi_tensor_new(SIZES(2, 3), NULL, TM_F32, meta), *b = tmi_tensor_new(SIZES(3, 2), NULL, TM_F32, meta), *grads[2];
    tm_tensor *seed = tmi_tensor_new(SIZES(2, 2), NULL, TM_F32, meta);
    n_steps = n_values = 0;
    number(a), number(b), number(seed);
    assert_ok(tm_tensor_set_requires_grad(a, true));
    assert_ok(tm_tensor_set_requires_grad(b, true));
    tmi_layers.intercept = captured;
    tmi_tls.modes |= TMI_MODE_CAPTURE;
    tm_tensor *y = tm_mm(a, b);
    assert_made(y);
    assert_ok(tm_grad(1, &y, &seed, 2, (tm_tensor *[]){a, b}, false, false, false, grads));
    tmi_tls.modes &= ~(uint32_t)TMI_MODE_CAPTURE;
    tmi_layers.intercept = NULL;
    int da = grads[0]->ext->value, db = grads[1]->ext->value;
    tm_tensor *values[64] = {make_f32((float[]){1, 2, 3, 4, 5, 6}, SIZES(2, 3)), make_f32((float[]){1, 0, 0, 1, 1, 1}, SIZES(3, 2)),
                             make_f32((float[]){1, 1, 1, 1}, SIZES(2, 2))};
    replay(values);
    assert_f32(values[3], (float[]){4, 5, 10, 11}, 4, 1e-6);
    assert_int_equal(values[da]->numel, 6);
    tm_tensor *got = tm_contiguous(values[da]), *other = tm_contiguous(values[db]);
    assert_f32(got, (float[]){1, 1, 2, 1, 1, 2}, 6, 1e-6);
    assert_f32(other, (float[]){5, 5, 7, 7, 9, 9}, 6, 1e-6);
    tm_release(got), tm_release(other);
    for (int i = 0; i < n_values; i++) tm_release(values[i]);
    tm_release(grads[0]), tm_release(grads[1]), tm_release(y), tm_release(seed), tm_release(a), tm_release(b);
}

int main(void)
{
    tmi_hooks.free_ext = free_ext;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrapper_gets_grad_fn),
        cmocka_unit_test(test_grad_of_vmap),
        cmocka_unit_test(test_captured_matmul_with_backward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
