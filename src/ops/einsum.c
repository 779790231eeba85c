/* einsum: the equation is parsed, operands are brought to one order of dims (the result's, then those summed over), and pairs are
 * contracted by bmm from left to right, or as `path` says. */

#include "op_bodies.h"
#include "ops.h"

#include "base/vec.h"

enum { LETTERS = 52, ELLIPSIS = 52 };   /* labels A-Z a-z, then "..." */

typedef struct subscripts {
    uint8_t label[TMI_MAX_DIMS + 1];
    int n;
    bool ellipsis;
} subscripts;

typedef struct equation {
    TMI_VEC(subscripts) in;
    subscripts out;
    bool has_out;
    int count[LETTERS];         /* how often a letter stands on the left */
    int ellipsis_dims;          /* most dims that "..." stands for */
    int place[LETTERS];         /* of a letter in the common order; -1: none */
    int ellipsis_place;
    int n_out, n_all;           /* dims of the result; of the common order */
} equation;

static int label_of(char c) { return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1; }
static char letter_of(int label) { return (char)(label < 26 ? 'A' + label : 'a' + label - 26); }

/* One subscript at text[*at]: a letter or "...". `operand` < 0: the result's side. */
static tm_status parse_one(equation *e, const char *text, size_t *at, subscripts *s, int operand)
{
    char c = text[*at];
    int label = label_of(c);
    TMI_REQUIRE(s->n < TMI_MAX_DIMS, TM_INVALID, "einsum(): too many subscripts");
    if (c == '.') {
        if (operand >= 0)
            TMI_REQUIRE(!s->ellipsis, TM_INVALID, "einsum(): found '.' for operand %d for which an ellipsis was already found", operand);
        else
            TMI_REQUIRE(!s->ellipsis, TM_INVALID, "einsum(): found '.' for output but an ellipsis (...) was already found");
        bool whole = text[*at + 1] == '.' && text[*at + 2] == '.';
        if (operand >= 0)
            TMI_REQUIRE(whole, TM_INVALID, "einsum(): found '.' for operand %d that is not part of any ellipsis", operand);
        else
            TMI_REQUIRE(whole, TM_INVALID, "einsum(): found '.' for output that is not part of any ellipsis (...)");
        *at += 2;
        s->ellipsis = true;
        s->label[s->n++] = ELLIPSIS;
        return TM_OK;
    }
    TMI_REQUIRE(label >= 0, TM_INVALID, "einsum(): invalid subscript given at index %zu in the equation string, subscripts must be in [a-zA-Z]", *at);
    s->label[s->n++] = (uint8_t)label;
    return TM_OK;
}

static tm_status parse_left(equation *e, const char *text, size_t *at, int64_t n_operands)
{
    subscripts s = {.n = 0};
    for (; text[*at] && !(text[*at] == '-' && text[*at + 1] == '>'); ++*at) {
        if (text[*at] == ' ') continue;
        if (text[*at] == ',') {
            if (!tmi_vec_push(&e->in, s)) return TM_NOMEM;
            TMI_REQUIRE(e->in.len < n_operands, TM_INVALID, "einsum(): fewer operands were provided than specified in the equation");
            s = (subscripts){.n = 0};
            continue;
        }
        TMI_TRY(parse_one(e, text, at, &s, (int)e->in.len));
        if (s.label[s.n - 1] != ELLIPSIS) e->count[s.label[s.n - 1]]++;
    }
    if (!tmi_vec_push(&e->in, s)) return TM_NOMEM;
    TMI_REQUIRE(e->in.len == n_operands, TM_INVALID, "einsum(): more operands were provided than specified in the equation");
    return TM_OK;
}

static tm_status parse_right(equation *e, const char *text, size_t at)
{
    for (e->has_out = true; text[at]; at++)
        if (text[at] != ' ') {
            TMI_TRY(parse_one(e, text, &at, &e->out, -1));
            int label = e->out.label[e->out.n - 1];
            if (label == ELLIPSIS) continue;
            for (int i = 0; i < e->out.n - 1; i++)
                TMI_REQUIRE(e->out.label[i] != label, TM_INVALID, "einsum(): output subscript %c appears more than once in the output", letter_of(label));
            TMI_REQUIRE(e->count[label] > 0, TM_INVALID, "einsum(): output subscript %c does not appear in the equation for any input operand",
                        letter_of(label));
        }
    return TM_OK;
}

/* Without "->": the ellipsis, then letters that stand once, in order. */
static void implicit_result(equation *e)
{
    e->out.label[e->out.n++] = ELLIPSIS;
    e->out.ellipsis = true;
    for (int c = 0; c < LETTERS; c++)
        if (e->count[c] == 1) e->out.label[e->out.n++] = (uint8_t)c;
}

static tm_status count_dims(equation *e, tm_tensor *const *t)
{
    for (int64_t i = 0; i < e->in.len; i++) {
        const subscripts *s = &e->in.data[i];
        int letters = s->n - s->ellipsis, extra = t[i]->ndim - letters;
        if (s->ellipsis)
            TMI_REQUIRE(extra >= 0, TM_SHAPE, "einsum(): the number of subscripts in the equation (%d) is more than the number of dimensions (%d) for operand %ld",
                        letters, t[i]->ndim, (long)i);
        else
            TMI_REQUIRE(extra == 0, TM_SHAPE,
                        "einsum(): the number of subscripts in the equation (%d) does not match the number of dimensions (%d) for operand %ld and no "
                        "ellipsis was given", letters, t[i]->ndim, (long)i);
        if (extra > e->ellipsis_dims) e->ellipsis_dims = extra;
    }
    return TM_OK;
}

/* The common order: the result's dims, then the rest. */
static tm_status order_dims(equation *e)
{
    int n = 0;
    for (int c = 0; c < LETTERS; c++) e->place[c] = -1;
    e->ellipsis_place = -1;
    for (int i = 0; i < e->out.n; i++) {
        if (e->out.label[i] == ELLIPSIS)
            e->ellipsis_place = n, n += e->ellipsis_dims;
        else
            e->place[e->out.label[i]] = n++;
    }
    e->n_out = n;
    if (e->ellipsis_place < 0) e->ellipsis_place = n, n += e->ellipsis_dims;
    for (int c = 0; c < LETTERS; c++)
        if (e->count[c] > 0 && e->place[c] < 0) e->place[c] = n++;
    e->n_all = n;
    TMI_REQUIRE(n <= TMI_MAX_DIMS, TM_INVALID, "einsum(): too many dimensions");
    return TM_OK;
}

/* Operand i with its dims in the common order, size 1 where it has none; a repeated letter takes the diagonal. */
static tm_tensor *arrange(const equation *e, int i, tm_tensor *t)
{
    const subscripts *s = &e->in.data[i];
    tm_int order[TMI_MAX_DIMS];
    int source[TMI_MAX_DIMS], dim = 0, extra = t->ndim - (s->n - s->ellipsis);
    for (int p = 0; p < e->n_all; p++) source[p] = -1;
    for (int k = 0; k < s->n; k++) {
        if (s->label[k] == ELLIPSIS) {
            for (int x = 0; x < extra; x++) source[e->ellipsis_place + e->ellipsis_dims - extra + x] = dim++;
            continue;
        }
        int p = e->place[s->label[k]];
        if (source[p] < 0) {
            source[p] = dim++;
            continue;
        }
        TMI_REQUIRE_PTR(t->sizes[dim] == t->sizes[source[p]], TM_SHAPE,
                        "einsum(): subscript %c is repeated for operand %d but the sizes don't match, %ld != %ld", letter_of(s->label[k]), i,
                        (long)t->sizes[dim], (long)t->sizes[source[p]]);
        t = tm_movedim_int(tm_diagonal_full(t, 0, source[p], dim), -1, source[p]);
        if (!t) return NULL;
    }
    int n = 0;
    for (int p = 0; p < e->n_all; p++)
        if (source[p] >= 0) order[n++] = source[p];
    tm_tensor *out = tm_permute(t, order, n);
    for (int p = 0; p < e->n_all && out; p++)
        if (source[p] < 0) out = tm_unsqueeze(out, p);
    return out;
}

static tm_status check_sizes(const equation *e, tm_tensor *const *t, int64_t n)
{
    for (int p = 0; p < e->n_all; p++) {
        tm_int seen = 1;
        for (int64_t i = 0; i < n; i++) {
            tm_int size = t[i]->sizes[p];
            if (size == 1 || size == seen) continue;
            if (seen == 1) {
                seen = size;
                continue;
            }
            for (int c = 0; c < LETTERS; c++)
                TMI_REQUIRE(e->place[c] != p, TM_SHAPE,
                            "einsum(): subscript %c has size %ld for operand %ld which does not broadcast with previously seen size %ld", letter_of(c),
                            (long)size, (long)i, (long)seen);
            return tmi_fail(TM_SHAPE, "einsum(): dimension %d covered by ellipsis has size %ld for operand %ld which does not broadcast with previously "
                            "seen size %ld", p - e->ellipsis_place, (long)size, (long)i, (long)seen);
        }
    }
    return TM_OK;
}

static tm_tensor *sum_over(tm_tensor *t, const bool *dims, bool keepdim)
{
    tm_int list[TMI_MAX_DIMS];
    int n = 0;
    for (int i = 0; t && i < t->ndim; i++)
        if (dims[i]) list[n++] = i;
    return n ? tm_sum_dim_intlist_full(t, list, n, keepdim, TM_DTYPE_DEFAULT) : t;
}

/* Dims of both operands by what becomes of them. */
typedef struct pair_dims {
    tm_int batch[TMI_MAX_DIMS], left[TMI_MAX_DIMS], right[TMI_MAX_DIMS], sum[TMI_MAX_DIMS];
    int n_batch, n_left, n_right, n_sum;
    tm_int batch_size, left_size, right_size, sum_size;
} pair_dims;

static pair_dims sort_dims(const tm_tensor *a, const tm_tensor *b, const bool *summed)
{
    pair_dims d = {.batch_size = 1, .left_size = 1, .right_size = 1, .sum_size = 1};
    for (int i = 0; i < a->ndim; i++) {
        if (summed[i])
            d.sum[d.n_sum++] = i, d.sum_size *= a->sizes[i];
        else if (a->sizes[i] != 1 && b->sizes[i] != 1)
            d.batch[d.n_batch++] = i, d.batch_size *= a->sizes[i];
        else if (a->sizes[i] != 1)
            d.left[d.n_left++] = i, d.left_size *= a->sizes[i];
        else
            d.right[d.n_right++] = i, d.right_size *= b->sizes[i];
    }
    return d;
}

static int append(tm_int *to, int at, const tm_int *from, int n)
{
    memcpy(to + at, from, (size_t)n * sizeof *to);
    return at + n;
}

/* Sum of a * b over the marked dims, which stay with size 1. */
static tm_tensor *contract(tm_tensor *a, tm_tensor *b, const bool *summed)
{
    bool only_a[TMI_MAX_DIMS], only_b[TMI_MAX_DIMS];
    for (int i = 0; i < a->ndim; i++) {
        only_a[i] = summed[i] && a->sizes[i] != 1 && b->sizes[i] == 1;
        only_b[i] = summed[i] && b->sizes[i] != 1 && a->sizes[i] == 1;
    }
    a = sum_over(a, only_a, true), b = sum_over(b, only_b, true);
    if (!a || !b) return NULL;
    pair_dims d = sort_dims(a, b, summed);
    tm_int la[TMI_MAX_DIMS], lb[TMI_MAX_DIMS], lc[TMI_MAX_DIMS], sizes[TMI_MAX_DIMS], back[TMI_MAX_DIMS];
    int na = append(la, append(la, append(la, append(la, 0, d.batch, d.n_batch), d.left, d.n_left), d.sum, d.n_sum), d.right, d.n_right);
    append(lb, append(lb, append(lb, append(lb, 0, d.batch, d.n_batch), d.sum, d.n_sum), d.right, d.n_right), d.left, d.n_left);
    append(lc, append(lc, append(lc, append(lc, 0, d.batch, d.n_batch), d.left, d.n_left), d.sum, d.n_sum), d.right, d.n_right);
    for (int i = 0; i < na; i++) {
        tm_int s = lc[i];
        sizes[i] = summed[s] ? 1 : a->sizes[s] != 1 ? a->sizes[s] : b->sizes[s];
        back[s] = i;
    }
    tm_tensor *x = tm_reshape(tm_permute(a, la, na), (tm_int[]){d.batch_size, d.left_size, d.sum_size}, 3);
    tm_tensor *y = tm_reshape(tm_permute(b, lb, na), (tm_int[]){d.batch_size, d.sum_size, d.right_size}, 3);
    return tm_permute(tm_view(tm_bmm(x, y), sizes, na), back, na);
}

/* Takes operand i out of the list. */
static tm_tensor *take(tm_tensor **t, int64_t *n, int64_t i)
{
    tm_tensor *taken = t[i];
    for (--*n; i < *n; i++) t[i] = t[i + 1];
    return taken;
}

static tm_tensor *contract_all(const equation *e, tm_tensor **t, int64_t n, const tm_int *path, int64_t n_path)
{
    bool summed[TMI_MAX_DIMS];
    for (int64_t step = 0; n > 1; step++) {
        int64_t i = 0, j = 1;
        if (path && 2 * step + 1 < n_path) i = path[2 * step], j = path[2 * step + 1];
        TMI_REQUIRE_PTR(i >= 0 && j >= 0 && i < n && j < n && i != j, TM_INVALID, "einsum(): invalid path");
        tm_tensor *a = t[i], *b = t[j];
        take(t, &n, i > j ? i : j);
        take(t, &n, i > j ? j : i);
        for (int p = 0; p < e->n_all; p++) {
            summed[p] = p >= e->n_out;
            for (int64_t k = 0; k < n; k++) summed[p] &= t[k]->sizes[p] == 1;
        }
        tm_tensor *c = contract(a, b, summed);
        if (!c) return NULL;
        if (path) {
            t[n++] = c;
        } else {
            memmove(t + 1, t, (size_t)n++ * sizeof *t);
            t[0] = c;
        }
    }
    for (int p = 0; p < e->n_all; p++) summed[p] = p >= e->n_out;
    return e->n_all > e->n_out ? sum_over(t[0], summed, false) : t[0];
}

static tm_status parse(equation *e, const char *text, tm_tensor *const *tensors, int64_t n)
{
    size_t at = 0;
    TMI_TRY(parse_left(e, text, &at, n));
    if (text[at])
        TMI_TRY(parse_right(e, text, at + 2));
    else
        implicit_result(e);
    TMI_TRY(count_dims(e, tensors));
    return order_dims(e);
}

static tm_tensor *run(equation *e, const char *text, tm_tensor *const *tensors, int64_t n, const tm_int *path, int64_t n_path, tm_tensor **work)
{
    TMI_TRY_PTR(parse(e, text, tensors, n));
    for (int64_t i = 0; i < n; i++) {
        work[i] = arrange(e, (int)i, tensors[i]);
        if (!work[i]) return NULL;
    }
    TMI_TRY_PTR(check_sizes(e, work, n));
    return contract_all(e, work, n, path, n_path);
}

tm_tensor *tmi_einsum(const char *text, tm_tensor *const *tensors, int64_t n, const tm_int *path, int64_t n_path)
{
    TMI_REQUIRE_PTR(n > 0, TM_INVALID, "einsum(): must provide at least one operand");
    equation e = {.has_out = false};
    tm_tensor **work = tmi_calloc((size_t)n * sizeof *work);
    tm_tensor *out = work ? run(&e, text, tensors, n, path, n_path, work) : NULL;
    tmi_vec_free(&e.in);
    tmi_free(work, (size_t)n * sizeof *work);
    return out;
}
