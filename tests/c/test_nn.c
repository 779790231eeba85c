/* C layers and optimisers give PyTorch's numbers: the expected ones below are PyTorch 2.13's for manual_seed(0) and the same calls. */
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "taimatsu/autograd.h"
#include "taimatsu/io.h"
#include "taimatsu/ops.h"
#include "taimatsu/optim.h"

typedef struct net {
    tm_params *p;
    tm_nn_linear linear;
    tm_nn_embedding embedding;
    tm_nn_layer_norm norm;
} net;

static void make_net(net *m)
{
    tm_manual_seed(0);
    m->p = tm_params_new();
    assert_made(m->p);
    assert_ok(tm_nn_linear_init(&m->linear, m->p, "fc", 3, 2, true));
    assert_ok(tm_nn_embedding_init(&m->embedding, m->p, "emb", 4, 3));
    assert_ok(tm_nn_layer_norm_init(&m->norm, m->p, "norm", 3, true));
}

/* sum(linear(x)^2) + sum(norm(embedding([2, 0]))[:, 0]) */
static tm_tensor *loss_of(const net *m)
{
    float xs[] = {1, 2, 3, -1, 0.5f, 2};
    int64_t ids[] = {2, 0};
    tm_tensor *y = tm_nn_linear_forward(&m->linear, make_f32(xs, SIZES(2, 3)));
    tm_tensor *z = tm_nn_layer_norm_forward(&m->norm, tm_nn_embedding_forward(&m->embedding, tm_tensor_from_data(SIZES(2), TM_I64, ids)));
    return tm_add(tm_sum(tm_mul(y, y)), tm_sum(tm_narrow(z, 1, 0, 1)));
}

static void test_first_values(void **state)
{
    net m;
    make_net(&m);
    assert_f32(m.linear.weight, (float[]){-0.00432251766f, 0.309715837f, -0.475185335f, -0.424894601f, -0.222368971f, 0.154820725f}, 6, 1e-7);
    assert_f32(m.linear.bias, (float[]){-0.0114391446f, 0.457774937f}, 2, 1e-7);
    assert_f32(m.embedding.weight, (float[]){-1.08452237f, -1.39859545f, 0.403346837f, 0.838026345f, -0.719257593f, -0.403343529f,
                                             -0.596635342f, 0.182036489f, -0.856674612f, 1.10060418f, -1.07118738f, 0.122701243f}, 12, 1e-6);
    assert_f32(m.norm.weight, (float[]){1, 1, 1}, 3, 0);
    assert_int_equal(tm_params_len(m.p), 5);
    assert_string_equal(tm_params_name(m.p, 1), "fc.bias");
    assert_ptr_equal(tm_params_find(m.p, "emb.weight"), m.embedding.weight);
    assert_null(tm_params_find(m.p, "absent"));
    assert_int_equal(tm_params_numel(m.p), 6 + 2 + 12 + 3 + 3);
    assert_null(tm_params_get(m.p, 5));
    assert_error(TM_INDEX, "parameter 5 of 5");
    tm_params_free(m.p);
}

static void test_gradients_and_clipping(void **state)
{
    net m;
    double norm;
    make_net(&m);
    tm_scope *scope = tm_scope_open();
    assert_ok(tm_backward(loss_of(&m)));
    assert_f32(tm_tensor_grad(m.linear.weight), (float[]){-0.0385130644f, -4.09017324f, -8.14183331f, -2.05704379f, 1.29154468f, 4.6401329f}, 6, 1e-5);
    assert_f32(tm_tensor_grad(m.linear.bias), (float[]){-3.24903059f, 2.26746202f}, 2, 1e-5);
    assert_f32(tm_tensor_grad(m.embedding.weight), (float[]){0.74312073f, -0.613592625f, -0.129528224f, 0, 0, 0,
                                                              1.39468622f, -0.349176347f, -1.04551005f, 0, 0, 0}, 12, 1e-5);
    assert_ok(tm_tensor_set_grad(m.embedding.weight, NULL));
    assert_ok(tm_tensor_set_grad(m.norm.weight, NULL));
    assert_ok(tm_tensor_set_grad(m.norm.bias, NULL));
    assert_ok(tm_params_clip_grad_norm(m.p, 1.0, &norm));
    assert_true(fabs(norm - 11.2315798) < 1e-5);
    assert_f32(tm_tensor_grad(m.linear.weight), (float[]){-0.0034289977f, -0.364167184f, -0.724905372f, -0.183148205f, 0.114992246f, 0.413132668f}, 6, 1e-6);
    assert_ok(tm_params_clip_grad_norm(m.p, 2.0, &norm));   /* small enough already: left alone */
    assert_true(fabs(norm - 1) < 1e-5);
    assert_f32(tm_tensor_grad(m.linear.bias), (float[]){-3.24903059f / 11.2315798f, 2.26746202f / 11.2315798f}, 2, 1e-6);
    assert_ok(tm_params_zero_grad(m.p));
    assert_null(tm_tensor_grad(m.linear.weight));
    tm_scope_close(scope);
    tm_params_free(m.p);
}

/* Three steps on sum(w * w * [1, 2, 3]) from [1, -2, 0.5]. */
static void take_steps(tm_optimizer *(*make)(const tm_params *), const float *wanted)
{
    tm_params *p = tm_params_new();
    tm_tensor *w = make_f32((float[]){1, -2, 0.5f}, SIZES(1, 3)), *c = make_f32((float[]){1, 2, 3}, SIZES(3));
    assert_ok(tm_tensor_set_requires_grad(w, true));
    assert_ok(tm_params_add(p, "w", w));
    assert_ok(tm_params_add(p, "again", w));   /* tied: stepped once */
    tm_optimizer *o = make(p);
    assert_made(o);
    for (int k = 0; k < 3; k++) {
        tm_scope *scope = tm_scope_open();
        assert_ok(tm_optimizer_zero_grad(o));
        assert_ok(tm_backward(tm_sum(tm_mul(tm_mul(w, w), c))));
        assert_ok(tm_optimizer_step(o));
        tm_scope_close(scope);
    }
    assert_f32(w, wanted, 3, 1e-6);
    tm_optimizer_free(o);
    tm_params_free(p);
    tm_release(w);
    tm_release(c);
}

static tm_optimizer *make_adamw(const tm_params *p)
{
    tm_adamw_options o = tm_adamw_defaults();
    o.lr = 0.1;
    o.weight_decay = 0.05;
    return tm_adamw_new(p, o);
}

static tm_optimizer *make_nesterov(const tm_params *p)
{
    return tm_sgd_new(p, (tm_sgd_options){.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.01});
}

static tm_optimizer *make_sgd(const tm_params *p) { return tm_sgd_new(p, (tm_sgd_options){.lr = 0.1}); }

static void test_optimisers(void **state)
{
    take_steps(make_adamw, (float[]){0.688270032f, -1.67234802f, 0.199106529f});
    take_steps(make_nesterov, (float[]){-0.111651078f, 0.867010474f, -0.151414737f});
    take_steps(make_sgd, (float[]){0.511999965f, -0.432000011f, 0.0319999941f});
}

static void test_bad_options(void **state)
{
    tm_params *p = tm_params_new();
    tm_adamw_options o = tm_adamw_defaults();
    o.lr = -1;
    assert_null(tm_adamw_new(p, o));
    assert_error(TM_VALUE, "Invalid learning rate: -1");
    o = tm_adamw_defaults();
    o.beta2 = 1;
    assert_null(tm_adamw_new(p, o));
    assert_error(TM_VALUE, "Invalid beta parameter at index 1");
    o.beta2 = NAN;
    assert_null(tm_adamw_new(p, o));
    assert_error(TM_VALUE, "Invalid beta parameter at index 1");
    assert_null(tm_sgd_new(p, (tm_sgd_options){.lr = 1, .nesterov = true}));
    assert_error(TM_VALUE, "Nesterov momentum requires a momentum and zero dampening");
    tm_tensor *t = make_f32((float[]){1}, SIZES(1));
    assert_ok(tm_params_add(p, "t", t));
    assert_int_equal(tm_params_add(p, "t", t), TM_VALUE);
    assert_error(TM_VALUE, "`t` is there already");
    tm_nn_linear l;
    assert_int_not_equal(tm_nn_linear_init(&l, p, "big", INT64_C(1) << 40, INT64_C(1) << 40, true), TM_OK);
    assert_error(tm_error_status(), "Storage size calculation overflowed");
    assert_int_equal(tm_params_len(p), 1);
    tm_release(t);
    tm_params_free(p);
}

/* Two steps, state to a file, state from the file into fresh objects, one step more: the same as three steps. */
static void test_resume_from_a_file(void **state)
{
    char path[] = "/tmp/tm_nn_XXXXXX";
    close(mkstemp(path));
    net a, b;
    make_net(&a);
    tm_adamw_options options = tm_adamw_defaults();
    tm_optimizer *o = tm_adamw_new(a.p, options);
    for (int k = 0; k < 3; k++) {
        tm_scope *scope = tm_scope_open();
        assert_ok(tm_optimizer_zero_grad(o));
        assert_ok(tm_backward(loss_of(&a)));
        if (k == 2) {
            tm_params *all = tm_params_new();
            for (int64_t i = 0; i < tm_params_len(a.p); i++) assert_ok(tm_params_add(all, tm_params_name(a.p, i), tm_params_get(a.p, i)));
            assert_ok(tm_optimizer_save_state(o, all, "optim."));
            assert_ok(tm_params_save(all, path));
            tm_params_free(all);
        }
        assert_ok(tm_optimizer_step(o));
        tm_scope_close(scope);
    }
    make_net(&b);
    assert_ok(tm_nn_init_zeros(b.linear.weight));
    assert_ok(tm_params_load(b.p, path));
    tm_optimizer *resumed = tm_adamw_new(b.p, options);
    tm_params *saved = tm_params_new();
    tm_safetensors *f = tm_safetensors_open(path);
    for (int64_t i = 0; i < tm_safetensors_len(f); i++) {
        tm_tensor *t = tm_safetensors_get(f, tm_safetensors_name(f, i));
        assert_ok(tm_params_add(saved, tm_safetensors_name(f, i), t));
        tm_release(t);
    }
    tm_safetensors_close(f);
    assert_ok(tm_optimizer_load_state(resumed, saved, "optim."));
    tm_scope *scope = tm_scope_open();
    assert_ok(tm_backward(loss_of(&b)));
    assert_ok(tm_optimizer_step(resumed));
    tm_scope_close(scope);
    for (int64_t i = 0; i < tm_params_len(a.p); i++)
        assert_f32(tm_params_get(b.p, i), tm_tensor_data(tm_params_get(a.p, i)), tm_tensor_numel(tm_params_get(a.p, i)), 0);
    assert_int_equal(tm_optimizer_load_state(resumed, saved, "other."), TM_NOT_FOUND);
    assert_error(TM_NOT_FOUND, "other.fc.weight.exp_avg");
    tm_optimizer_free(o);
    tm_optimizer_free(resumed);
    tm_params_free(saved);
    tm_params_free(a.p);
    tm_params_free(b.p);
    unlink(path);
}

static void test_load_refuses_other_shapes(void **state)
{
    char path[] = "/tmp/tm_nn_XXXXXX";
    close(mkstemp(path));
    net m;
    make_net(&m);
    assert_ok(tm_params_save(m.p, path));
    tm_params *other = tm_params_new();
    tm_nn_linear l;
    assert_ok(tm_nn_linear_init(&l, other, "fc", 4, 2, true));
    float before = ((float *)tm_tensor_data(l.bias))[0];
    assert_int_equal(tm_params_load(other, path), TM_SHAPE);
    assert_error(TM_SHAPE, "size mismatch for fc.weight: the file has shape [2, 3], the parameter [2, 4]");
    assert_true(((float *)tm_tensor_data(l.bias))[0] == before);   /* nothing was changed */
    tm_params_free(other);
    tm_params_free(m.p);
    unlink(path);
}

static tm_status build_and_step(void *ctx)
{
    tm_params *p = tm_params_new();
    tm_nn_linear l = {0};
    tm_status s = p ? tm_nn_linear_init(&l, p, "fc", 3, 2, true) : TM_NOMEM;
    tm_optimizer *o = s == TM_OK ? tm_adamw_new(p, tm_adamw_defaults()) : NULL;
    tm_scope *scope = o ? tm_scope_open() : NULL;
    if (scope) {
        tm_backward(tm_sum(tm_nn_linear_forward(&l, tm_ones((int64_t[]){2, 3}, 2))));
        if (tm_error_status() == TM_OK) tm_optimizer_step(o);
    }
    tm_scope_close(scope);
    tm_optimizer_free(o);
    tm_params_free(p);
    return tm_error_status();
}

static void test_failed_allocations(void **state)
{
    assert_true(fail_each_allocation(build_and_step, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_values), cmocka_unit_test(test_gradients_and_clipping), cmocka_unit_test(test_optimisers),
        cmocka_unit_test(test_bad_options), cmocka_unit_test(test_resume_from_a_file), cmocka_unit_test(test_load_refuses_other_shapes),
        cmocka_unit_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
