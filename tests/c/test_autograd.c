/* The tape and the engine: values of gradients, graphs kept and freed, hooks, custom functions, errors, failing allocations. */
#include "harness.h"

#include "autograd/api.h"
#include "taimatsu.h"

static tm_tensor *leaf(const float *values, int ndim, const int64_t *sizes)
{
    tm_tensor *t = make_f32(values, ndim, sizes);
    assert_ok(tm_tensor_set_requires_grad(t, true));
    return t;
}

static void assert_grad(tm_tensor *t, const float *values, int64_t n)
{
    assert_made(tm_tensor_grad(t));
    assert_f32(tm_tensor_grad(t), values, n, 1e-6);
}

static void assert_fn(tm_tensor *t, const char *name)
{
    const char *have = tm_tensor_grad_fn_name(t);
    if (!have || strcmp(have, name) != 0) fail_msg("wanted grad_fn %s, got %s", name, have ? have : "none");
}

static tm_tensor *add_number(tm_tensor *t, double x) { return tm_add_scalar(t, tm_f64(x)); }

/* ---------------------------------------------------------------- values */

static void test_sum_of_products(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *a = leaf((float[]){1, 2, 3}, SIZES(3)), *b = leaf((float[]){4, 5, 6}, SIZES(3));
    tm_tensor *y = tm_add(tm_mul(a, b), a);
    assert_fn(y, "AddBackward0");
    assert_true(tm_tensor_requires_grad(y) && !tm_tensor_is_leaf(y) && tm_tensor_is_leaf(a));
    assert_ok(tm_backward(tm_sum(y)));
    assert_grad(a, (float[]){5, 6, 7}, 3);
    assert_grad(b, (float[]){1, 2, 3}, 3);
    tm_scope_close(s);
}

static void test_broadcast_is_summed(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *a = leaf((float[]){1, 2, 3, 4, 5, 6}, SIZES(2, 3)), *b = leaf((float[]){1, 10, 100}, SIZES(3)), *c = leaf((float[]){2, 3}, SIZES(2, 1));
    assert_ok(tm_backward(tm_sum(tm_mul(tm_mul(a, b), c))));
    assert_grad(a, (float[]){2, 20, 200, 3, 30, 300}, 6);
    assert_grad(b, (float[]){14, 19, 24}, 3);
    assert_grad(c, (float[]){321, 654}, 2);
    tm_scope_close(s);
}

static void test_gradients_accumulate(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *a = leaf((float[]){1, 2}, SIZES(2));
    assert_ok(tm_backward(tm_sum(tm_mul(a, a))));
    tm_tensor *first = tm_tensor_grad(a);
    assert_grad(a, (float[]){2, 4}, 2);
    assert_ok(tm_backward(tm_sum(a)));
    assert_ptr_equal(tm_tensor_grad(a), first);   /* the same object, changed in place */
    assert_grad(a, (float[]){3, 5}, 2);
    assert_ok(tm_tensor_set_grad(a, NULL));
    assert_null(tm_tensor_grad(a));
    tm_scope_close(s);
}

static void test_grad_mode(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *a = leaf((float[]){1, 2}, SIZES(2));
    bool was = tm_set_grad_enabled(false);
    tm_tensor *y = tm_mul(a, a);
    tm_set_grad_enabled(was);
    assert_true(was && tm_grad_enabled());
    assert_false(tm_tensor_requires_grad(y));
    assert_null(tm_tensor_grad_fn_name(y));
    assert_false(tm_tensor_requires_grad(tm_tensor_detach(tm_mul(a, a))));
    tm_scope_close(s);
}

static void test_integers_do_not_record(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *a = leaf((float[]){1, 5, 3, 2}, SIZES(2, 2)), *values = NULL, *indices = NULL;
    assert_ok(tm_max_dim(a, 1, &values, &indices));
    assert_true(tm_tensor_requires_grad(values));
    assert_false(tm_tensor_requires_grad(indices));
    assert_false(tm_tensor_requires_grad(tm_argmax(a)));
    assert_ok(tm_backward(tm_sum(values)));
    assert_grad(a, (float[]){0, 1, 1, 0}, 4);
    tm_scope_close(s);
}

/* ---------------------------------------------------------------- graphs */

static void test_long_chain(void **state)
{
    (void)state;
    tm_tensor *a = leaf((float[]){1}, SIZES(1)), *y = tm_retain(a);
    for (int i = 0; i < 1000000; i++) {
        tm_tensor *next = add_number(y, 1);
        tm_release(y);
        y = next;
        assert_non_null(y);
    }
    assert_ok(tm_backward(y));
    assert_grad(a, (float[]){1}, 1);
    tm_release(y);   /* frees a million nodes */
    tm_release(a);
}

static void test_second_backward(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *a = leaf((float[]){2}, SIZES(1)), *y = tm_sum(tm_mul(a, a));
    assert_ok(tm_backward_full(1, &y, NULL, true, false));
    assert_ok(tm_backward(y));
    assert_grad(a, (float[]){8}, 1);
    tm_backward(y);
    assert_error(TM_AUTOGRAD, "Trying to backward through the graph a second time");
    tm_scope_close(s);
}

static void test_higher_derivatives(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){2}, SIZES(1)), *y = tm_mul(tm_mul(x, x), tm_mul(x, x)), *d[4] = {y};   /* x^4 */
    for (int i = 1; i < 4; i++) {
        assert_ok(tm_grad(1, &d[i - 1], NULL, 1, &x, true, true, false, &d[i]));
        assert_true(tm_tensor_requires_grad(d[i]));
    }
    assert_f32(d[1], (float[]){32}, 1, 1e-6);
    assert_f32(d[2], (float[]){48}, 1, 1e-6);
    assert_f32(d[3], (float[]){48}, 1, 1e-6);
    tm_tensor *e = tm_exp(x), *de = NULL, *dde = NULL;   /* a saved result */
    assert_ok(tm_grad(1, &e, NULL, 1, &x, true, true, false, &de));
    assert_ok(tm_grad(1, &de, NULL, 1, &x, false, false, false, &dde));
    assert_f32(dde, (float[]){7.389056f}, 1, 1e-6);
    tm_scope_close(s);
}

static void test_grad_of_inner_tensors(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){3}, SIZES(1)), *y = tm_mul(x, x), *z = tm_mul(y, y), *unused = leaf((float[]){1}, SIZES(1));
    tm_tensor *in[2] = {y, x}, *out[2];
    assert_ok(tm_grad(1, &z, NULL, 2, in, true, false, false, out));
    assert_f32(out[0], (float[]){18}, 1, 1e-6);
    assert_f32(out[1], (float[]){108}, 1, 1e-6);
    assert_null(tm_tensor_grad(x));
    in[1] = unused;
    tm_grad(1, &z, NULL, 2, in, true, false, false, out);
    assert_error(TM_AUTOGRAD, "The differentiated Tensor at index 1 appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
    assert_ok(tm_grad(1, &z, NULL, 2, in, false, false, true, out));
    assert_f32(out[0], (float[]){18}, 1, 1e-6);
    assert_null(out[1]);
    tm_scope_close(s);
}

static void test_retain_grad(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){3, 4}, SIZES(2)), *y = tm_mul_scalar(x, tm_f64(2));
    assert_ok(tm_retain_grad(y));
    tm_mul_scalar_inplace(y, tm_f64(5));   /* what is retained follows the tensor */
    assert_ok(tm_backward(tm_sum(tm_mul(y, y))));
    assert_grad(y, (float[]){60, 80}, 2);
    assert_grad(x, (float[]){600, 800}, 2);
    tm_retain_grad(make_f32((float[]){1}, SIZES(1)));
    assert_error(TM_AUTOGRAD, "can't retain_grad on Tensor that has requires_grad=False");
    tm_scope_close(s);
}

static void test_lists(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){1, 2, 3, 4}, SIZES(4)), *y = leaf((float[]){5, 6}, SIZES(2));
    tm_tensor_list *parts = tm_split(x, 2);
    tm_tensor *joined = tm_cat((tm_tensor *[]){tm_tensor_list_get(parts, 1), y}, 2);
    assert_ok(tm_backward(tm_sum(tm_mul(joined, make_f32((float[]){1, 2, 3, 4}, SIZES(4))))));
    assert_grad(x, (float[]){0, 0, 1, 2}, 4);
    assert_grad(y, (float[]){3, 4}, 2);
    tm_scope_close(s);
}

/* ---------------------------------------------------------------- views and in-place: PyTorch's answers */

typedef struct view_case {
    bool leaf, before, on_base;
    float loss;
    const char *base_fn, *view_fn;
    float w[4], x[4];
} view_case;

static const view_case view_cases[] = {
    {true, true, true, 255, "MulBackward0", "AsStridedBackward0", {1, 4, 39, 96}, {0}},
    {true, true, false, 312.5f, "CopySlices", "AsStridedBackward0", {39, 96}, {0}},
    {true, false, true, 255, "MulBackward0", "SelectBackward0", {1, 4, 39, 96}, {0}},
    {true, false, false, 312.5f, "CopySlices", "SelectBackward0", {39, 96}, {0}},
    {false, true, true, 510, "MulBackward0", "AsStridedBackward0", {2, 8, 78, 192}, {1, 4, 39, 96}},
    {false, true, false, 625, "CopySlices", "AsStridedBackward0", {78, 192}, {2, 4, 13, 144}},
    {false, false, true, 510, "MulBackward0", "SelectBackward0", {2, 8, 78, 192}, {1, 4, 39, 96}},
    {false, false, false, 625, "CopySlices", "SelectBackward0", {78, 192}, {2, 4, 13, 144}},
};

static void run_view_case(const view_case *c)
{
    tm_scope *s = tm_scope_open();
    const float numbers[] = {1, 2, 3, 4};
    tm_tensor *x = leaf(numbers, SIZES(2, 2)), *b = c->leaf ? make_f32(numbers, SIZES(2, 2)) : tm_mul_scalar(x, tm_f64(2));
    tm_tensor *w = c->on_base ? leaf((float[]){.5f, 1, 1.5f, 2}, SIZES(2, 2)) : leaf((float[]){.5f, 3}, SIZES(2));
    tm_tensor *v = c->before ? tm_select_int(b, 0, 1) : NULL;
    if (c->on_base) tm_mul_inplace(b, w);
    else tm_mul_inplace(v ? v : tm_select_int(b, 0, 1), w);
    if (!v) v = tm_select_int(b, 0, 1);
    tm_tensor *of_b = tm_sum(tm_mul(b, make_f32(numbers, SIZES(2, 2)))), *of_v = tm_sum(tm_mul(v, make_f32((float[]){10, 20}, SIZES(2))));
    tm_tensor *loss = tm_add(of_b, of_v);
    assert_fn(b, c->base_fn);
    assert_fn(v, c->view_fn);
    assert_f32(loss, &c->loss, 1, 1e-6);
    assert_ok(tm_backward(loss));
    assert_grad(w, c->w, c->on_base ? 4 : 2);
    if (!c->leaf) assert_grad(x, c->x, 4);
    tm_scope_close(s);
}

static void test_views_and_inplace(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof view_cases / sizeof *view_cases; i++) run_view_case(&view_cases[i]);
}

static void test_second_derivative_through_a_view(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){2, 3}, SIZES(2)), *b = tm_mul(x, x), *g = NULL, *h = NULL;
    tm_mul_inplace(tm_select_int(b, 0, 1), tm_select_int(x, 0, 0));   /* b = [x0^2, x1^2 x0] */
    tm_tensor *y = tm_sum(b);
    assert_ok(tm_grad(1, &y, NULL, 1, &x, true, true, false, &g));
    assert_f32(g, (float[]){13, 12}, 2, 1e-6);       /* 2 x0 + x1^2, 2 x0 x1 */
    tm_tensor *sum = tm_sum(g);
    assert_ok(tm_grad(1, &sum, NULL, 1, &x, false, false, false, &h));
    assert_f32(h, (float[]){8, 10}, 2, 1e-6);        /* 2 + 2 x1, 2 x1 + 2 x0 */
    tm_scope_close(s);
}

static void test_inplace_saves_what_it_overwrites(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){2, 3}, SIZES(2)), *w = leaf((float[]){5, 7}, SIZES(2)), *y = tm_mul_scalar(x, tm_f64(1));
    tm_mul_inplace(y, w);
    tm_exp_inplace(y);
    tm_tensor *scaled = tm_mul_scalar(y, tm_f64(1e-4));
    assert_int_equal(tm_tensor_version(y), 2);
    assert_ok(tm_backward(tm_sum(scaled)));
    float gx[2] = {(float)(exp(10) * 5e-4), (float)(exp(21) * 7e-4)}, gw[2] = {(float)(exp(10) * 2e-4), (float)(exp(21) * 3e-4)};
    assert_grad(x, gx, 2);
    assert_grad(w, gw, 2);
    tm_scope_close(s);
}

static void test_geometry_inplace(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){1, 2, 3, 4, 5, 6}, SIZES(2, 3)), *y = tm_mul_scalar(x, tm_f64(1));
    tm_t_inplace(y);
    tm_unsqueeze_inplace(y, 0);
    assert_int_equal(tm_tensor_ndim(y), 3);
    assert_fn(y, "UnsqueezeBackward0");
    assert_ok(tm_backward(tm_sum(tm_mul(y, make_f32((float[]){1, 2, 3, 4, 5, 6}, SIZES(1, 3, 2))))));
    assert_grad(x, (float[]){1, 3, 5, 2, 4, 6}, 6);
    tm_scope_close(s);
}

/* h.add_(h * h): the node that saved h must not keep it, now that h leads to that node. */
static void test_inplace_with_itself_is_freed(void **state)
{
    (void)state;
    tm_memory_stats before, after;
    for (int round = 0; round < 2; round++) {   /* the first one warms caches */
        tm_get_memory_stats(&before);
        tm_scope *s = tm_scope_open();
        tm_tensor *x = leaf((float[]){1, 2}, SIZES(2)), *h = tm_mul_scalar(x, tm_f64(1)), *plain = make_f32((float[]){1, 2}, SIZES(2));
        tm_add_inplace(h, tm_mul(tm_mul(h, h), x));
        tm_add_inplace(tm_select_int(h, 0, 0), tm_sum(tm_mul(h, h)));
        tm_add_inplace(plain, tm_mul(plain, x));
        tm_backward(tm_sum(h));
        assert_error(TM_AUTOGRAD, "has been modified by an inplace operation");
        tm_scope_close(s);
        tm_get_memory_stats(&after);
    }
    assert_int_equal(after.in_use, before.in_use);
}

/* ---------------------------------------------------------------- errors */

static void test_inplace_errors(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){1, 2}, SIZES(2)), *y = tm_mul_scalar(x, tm_f64(1)), *z = tm_exp(y);
    add_number(x, 1);
    tm_add_scalar_inplace(x, tm_f64(1));
    assert_error(TM_AUTOGRAD, "a leaf Variable that requires grad is being used in an in-place operation.");
    tm_add_scalar_inplace(tm_select_int(x, 0, 0), tm_f64(1));
    assert_error(TM_AUTOGRAD, "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    tm_tensor *part = tm_tensor_list_get(tm_split(y, 1), 0);
    tm_add_scalar_inplace(part, tm_f64(1));
    assert_error(TM_AUTOGRAD, "Output 0 of Split is a view and is being modified inplace. This view is the output of a function that returns multiple views.");
    tm_set_grad_enabled(false);
    tm_tensor *v = tm_select_int(y, 0, 0);
    tm_set_grad_enabled(true);
    tm_add_scalar_inplace(v, tm_f64(1));
    assert_error(TM_AUTOGRAD, "A view was created in no_grad mode and is being modified inplace with grad mode enabled.");
    tm_add_scalar_inplace(z, tm_f64(1));
    tm_backward(tm_sum(z));
    assert_error(TM_AUTOGRAD, "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [2]], "
                              "which is output 0 of Exp, is at version 1; expected version 0 instead. Hint: enable anomaly detection");
    tm_scope_close(s);
}

static void test_backward_errors(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){1, 2}, SIZES(2)), *y = tm_mul(x, x), *three = make_f32((float[]){1, 1, 1}, SIZES(3)), *one = make_f32((float[]){1}, SIZES(1));
    tm_backward(y);
    assert_error(TM_AUTOGRAD, "grad can be implicitly created only for scalar outputs");
    tm_backward(one);
    assert_error(TM_AUTOGRAD, "element 0 of tensors does not require grad and does not have a grad_fn");
    tm_backward_full(1, &y, &three, false, false);
    assert_error(TM_AUTOGRAD, "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of torch.Size([2]).");
    tm_add_out(one, x, x, tm_i64(1));
    assert_error(TM_AUTOGRAD, "add(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    int64_t n[] = {1, 2};
    tm_tensor_set_requires_grad(tm_tensor_from_data(1, (int64_t[]){2}, TM_I64, n), true);
    assert_error(TM_AUTOGRAD, "only Tensors of floating point dtype can require gradients");
    tm_tensor_set_requires_grad(y, false);
    assert_error(TM_AUTOGRAD, "you can only change requires_grad flags of leaf variables.");
    tm_tensor_set_grad(x, three);
    assert_error(TM_AUTOGRAD, "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'.");
    tm_scope_close(s);
}

static void test_inference(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){1, 2}, SIZES(2));
    tm_set_inference(true);
    tm_tensor *a = tm_mul(x, x);
    assert_false(tm_grad_enabled());
    tm_set_inference(false);
    assert_false(tm_tensor_requires_grad(a));
    tm_mul(a, x);
    assert_error(TM_AUTOGRAD, "Inference tensors cannot be saved for backward.");
    assert_fn(tm_add(a, x), "AddBackward0");
    tm_add_scalar_inplace(a, tm_f64(1));
    assert_error(TM_AUTOGRAD, "Inplace update to inference tensor outside InferenceMode is not allowed.");
    tm_tensor_set_requires_grad(a, true);
    assert_error(TM_AUTOGRAD, "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    tm_scope_close(s);
}

/* ---------------------------------------------------------------- hooks */

static tm_tensor *triple(void *ctx, tm_tensor *grad)
{
    ++*(int *)ctx;
    return tm_mul_scalar(grad, tm_f64(3));
}

static void count_free(void *ctx) { *(int *)ctx += 100; }

static tm_tensor *fail_hook(void *ctx, tm_tensor *grad)
{
    tm_error_set(TM_VALUE, "the hook says no");
    return NULL;
}

static void test_tensor_hooks(void **state)
{
    (void)state;
    int leaf_calls = 0, inner_calls = 0;
    tm_hook *h = NULL;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){1, 2}, SIZES(2)), *y = tm_mul(x, x);
    assert_ok(tm_add_hook(x, triple, count_free, &leaf_calls, NULL));
    assert_ok(tm_add_hook(y, triple, count_free, &inner_calls, &h));
    assert_ok(tm_backward_full(1, (tm_tensor *[]){tm_sum(y)}, NULL, true, false));
    assert_grad(x, (float[]){18, 36}, 2);
    tm_remove_hook(h);
    assert_int_equal(inner_calls, 101);
    assert_ok(tm_tensor_set_grad(x, NULL));
    assert_ok(tm_backward(tm_sum(y)));
    assert_grad(x, (float[]){6, 12}, 2);
    assert_ok(tm_add_hook(y, fail_hook, NULL, NULL, NULL));
    tm_backward(tm_sum(y));
    assert_error(TM_VALUE, "the hook says no");
    tm_add_hook(make_f32((float[]){1}, SIZES(1)), triple, NULL, &leaf_calls, NULL);
    assert_error(TM_AUTOGRAD, "cannot register a hook on a tensor that doesn't require gradient");
    tm_scope_close(s);
    assert_int_equal(leaf_calls, 102);
}

static char order[64];

static tm_status note_call(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs)
{
    strcat(order, ctx);
    return TM_OK;
}

static void test_order_of_hooks(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){1, 2}, SIZES(2)), *y = tm_mul(x, x);
    order[0] = 0;
    assert_ok(tmi_node_add_post_hook(tmi_grad_fn_of(y), note_call, NULL, "post ", NULL));
    assert_ok(tmi_node_add_pre_hook(tmi_grad_fn_of(y), note_call, NULL, "pre ", NULL));
    assert_ok(tmi_tensor_add_hook(y, note_call, NULL, "tensor ", NULL));
    assert_ok(tmi_tensor_add_post_accumulate_hook(x, note_call, NULL, "accumulated ", NULL));
    assert_ok(tmi_tensor_add_hook(x, note_call, NULL, "leaf ", NULL));
    assert_ok(tm_backward(tm_sum(y)));
    assert_string_equal(order, "tensor pre post leaf accumulated ");
    assert_int_not_equal(tmi_tensor_add_post_accumulate_hook(y, note_call, NULL, "", NULL), TM_OK);
    assert_error(TM_AUTOGRAD, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    tm_scope_close(s);
}

/* ---------------------------------------------------------------- saved-tensor hooks */

static int packed, unpacked, freed;

static tm_status pack(void *ctx, tm_tensor *t, void **data)
{
    packed++;
    assert_false(tm_tensor_requires_grad(t));
    *data = tm_retain(t);
    return TM_OK;
}

static tm_status unpack(void *ctx, void *data, tm_tensor **out)
{
    unpacked++;
    *out = tm_retain(data);
    return TM_OK;
}

static void free_data(void *ctx, void *data)
{
    freed++;
    tm_release(data);
}

static void test_saved_tensor_hooks(void **state)
{
    (void)state;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){1, 2}, SIZES(2)), *g = NULL, *h = NULL;
    tmi_saved_hooks hooks = {.refs = 1, .pack = pack, .unpack = unpack, .free_data = free_data};
    assert_ok(tmi_saved_hooks_push(&hooks));
    tm_tensor *y = tm_exp(tm_mul(x, x));   /* two inputs and a result are saved */
    tmi_saved_hooks_pop();
    assert_int_equal(packed, 3);
    tm_tensor *total = tm_sum(y);
    assert_ok(tm_grad(1, &total, NULL, 1, &x, true, true, false, &g));
    float e = expf(1), e4 = expf(4);
    assert_f32(g, (float[]){2 * e, 4 * e4}, 2, 1e-5);
    tm_tensor *of_g = tm_sum(g);
    assert_ok(tm_grad(1, &of_g, NULL, 1, &x, false, false, false, &h));
    assert_f32(h, (float[]){6 * e, 18 * e4}, 2, 1e-5);   /* (2 + 4 x^2) exp(x^2) */
    assert_true(unpacked >= 3);
    tm_scope_close(s);
    assert_int_equal(freed, 3);
}

/* ---------------------------------------------------------------- custom functions */

static tm_status square_forward(tm_function_call *c, int n_in, tm_tensor *const *in, int n_out, tm_tensor **out)
{
    out[0] = tm_mul(in[0], in[0]);
    if (!out[0]) return tm_error_status();
    assert_false(tm_tensor_requires_grad(out[0]));
    return tm_call_save(c, 1, in);
}

static tm_status square_backward(tm_function_call *c, int n_out, tm_tensor *const *grad_out, int n_in, tm_tensor **grad_in)
{
    ++*(int *)tm_call_user(c);
    grad_in[0] = tm_mul(grad_out[0], tm_mul_scalar(tm_call_saved(c, 0), tm_f64(2)));
    return tm_error_status();
}

static const tm_function square = {"SquareBackward", square_forward, square_backward, count_free};

static void test_custom_function(void **state)
{
    (void)state;
    int calls = 0;
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){3}, SIZES(1)), *y = NULL, *g = NULL, *h = NULL;
    assert_ok(tm_function_apply(&square, &calls, 1, &x, 1, &y));
    assert_fn(y, "SquareBackward");
    tm_tensor *z = tm_mul(y, y);
    assert_ok(tm_grad(1, &z, NULL, 1, &x, true, true, false, &g));
    assert_f32(g, (float[]){108}, 1, 1e-6);
    assert_ok(tm_grad(1, &g, NULL, 1, &x, false, false, false, &h));
    assert_f32(h, (float[]){108}, 1, 1e-6);   /* 12 x^2 */
    assert_int_equal(calls, 2);
    tm_scope_close(s);
    assert_int_equal(calls, 102);
}

static tm_status wrong_backward(tm_function_call *c, int n_out, tm_tensor *const *grad_out, int n_in, tm_tensor **grad_in)
{
    grad_in[0] = make_f32((float[]){1, 2, 3}, SIZES(3));
    return TM_OK;
}

static void test_custom_function_errors(void **state)
{
    (void)state;
    int calls = 0;
    const tm_function wrong = {"WrongBackward", square_forward, wrong_backward, NULL};
    tm_scope *s = tm_scope_open();
    tm_tensor *x = leaf((float[]){3, 4}, SIZES(2)), *y = NULL;
    assert_ok(tm_function_apply(&wrong, &calls, 1, &x, 1, &y));
    tm_backward(tm_sum(y));
    assert_error(TM_AUTOGRAD, "Function WrongBackward returned an invalid gradient at index 0 - got [3] but expected shape compatible with [2]");
    tm_scope_close(s);
}

/* ---------------------------------------------------------------- failing allocations */

/* A bit of everything; every reference is given back whatever fails. */
static tm_status everything(void *ctx)
{
    int calls = 0;
    tm_scope *s = tm_scope_open();
    if (!s) return tm_error_status();
    const float numbers[] = {1, 2, 3, 4};
    tm_tensor *x = tm_tensor_from_data(2, (int64_t[]){2, 2}, TM_F32, numbers), *y = NULL, *g = NULL;
    if (x) tm_tensor_set_requires_grad(x, true);
    tm_tensor *b = x ? tm_mul_scalar(x, tm_f64(2)) : NULL, *v = b ? tm_select_int(b, 0, 1) : NULL;
    if (v) tm_mul_scalar_inplace(v, tm_f64(3));
    if (b && !tm_error_status()) tm_function_apply(&square, &calls, 1, &b, 1, &y);
    tm_tensor *loss = y ? tm_sum(tm_exp(tm_mul_scalar(y, tm_f64(1e-3)))) : NULL;
    if (loss && !tm_error_status()) tm_grad(1, &loss, NULL, 1, &x, true, true, false, &g);
    if (g && !tm_error_status()) tm_backward(tm_sum(g));
    tm_status status = tm_error_status();
    tm_scope_close(s);
    return status;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(everything, NULL) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_of_products), cmocka_unit_test(test_broadcast_is_summed), cmocka_unit_test(test_gradients_accumulate),
        cmocka_unit_test(test_grad_mode), cmocka_unit_test(test_integers_do_not_record), cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_second_backward), cmocka_unit_test(test_higher_derivatives), cmocka_unit_test(test_grad_of_inner_tensors),
        cmocka_unit_test(test_retain_grad), cmocka_unit_test(test_lists), cmocka_unit_test(test_views_and_inplace),
        cmocka_unit_test(test_second_derivative_through_a_view), cmocka_unit_test(test_inplace_saves_what_it_overwrites),
        cmocka_unit_test(test_geometry_inplace), cmocka_unit_test(test_inplace_with_itself_is_freed),
        cmocka_unit_test(test_inplace_errors), cmocka_unit_test(test_backward_errors),
        cmocka_unit_test(test_inference), cmocka_unit_test(test_tensor_hooks), cmocka_unit_test(test_order_of_hooks),
        cmocka_unit_test(test_saved_tensor_hooks), cmocka_unit_test(test_custom_function), cmocka_unit_test(test_custom_function_errors),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
