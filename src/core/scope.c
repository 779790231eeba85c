/* Scopes: stacks of references that are given back together. One entry per owned tensor; an entry also counts the references that a
 * user took with tm_retain while the scope owned the tensor, so that tm_release gives those back first and only then takes the tensor
 * out of the scope. */
#include "base/alloc.h"
#include "tensor_state.h"

typedef struct entry {
    tm_tensor *t;
    uint32_t retained;
} entry;

enum { FIRST_ENTRIES = 12 };

struct tm_scope {
    tm_scope *outer;
    int64_t len, cap;
    tm_tensor_list *lists;
    entry *entries;   /* = first, or a heap block */
    entry first[FIRST_ENTRIES];
};

tm_scope *tm_scope_open(void)
{
    tm_scope *s = tmi_alloc(sizeof *s);
    if (!s) return NULL;
    s->outer = tmi_tls.scope;
    s->lists = NULL;
    s->len = 0;
    s->cap = FIRST_ENTRIES;
    s->entries = s->first;
    return tmi_tls.scope = s;
}

static tm_status add(tm_scope *s, tm_tensor *t)
{
    if (TMI_UNLIKELY(s->len == s->cap)) {
        size_t old = (size_t)s->cap * sizeof(entry);
        entry *e = s->entries == s->first ? tmi_alloc(old * 2) : tmi_realloc(s->entries, old, old * 2);
        if (!e) return TM_NOMEM;
        if (s->entries == s->first) memcpy(e, s->first, old);
        s->entries = e;
        s->cap *= 2;
    }
    s->entries[s->len++] = (entry){t, 0};
    t->flags |= TMI_IN_SCOPE;
    return TM_OK;
}

/* Newest first: what is looked for was mostly made just now. */
static entry *find(const tm_scope *s, const tm_tensor *t)
{
    for (int64_t i = s->len; i-- > 0;)
        if (s->entries[i].t == t) return &s->entries[i];
    return NULL;
}

static void take_out(tm_scope *s, entry *e)
{
    int64_t after = s->entries + --s->len - e;
    memmove(e, e + 1, (size_t)after * sizeof *e);
}

/* Results made while the scope closes (by deleters) find the outer scope; entries go newest first. */
static void close_one(tm_scope *s)
{
    tmi_tls.scope = s->outer;
    for (tm_tensor_list *l = s->lists, *next; l; l = next) {
        next = l->next_in_scope;
        l->next_in_scope = NULL;
        tm_tensor_list_release(l);
    }
    while (s->len > 0) tmi_release(s->entries[--s->len].t);
    if (s->entries != s->first) tmi_free(s->entries, (size_t)s->cap * sizeof(entry));
    tmi_free(s, sizeof *s);
}

static bool is_open(const tm_scope *scope)
{
    for (const tm_scope *s = tmi_tls.scope; s; s = s->outer)
        if (s == scope) return true;
    return false;
}

void tm_scope_close(tm_scope *scope)
{
    if (!scope || !is_open(scope)) return;
    tm_scope *outer = scope->outer;
    while (tmi_tls.scope != outer) close_one(tmi_tls.scope);
}

tm_tensor *tmi_own_slow(tm_tensor *result)
{
    if (!result || add(tmi_tls.scope, result) == TM_OK) return result;
    tmi_release(result);
    return NULL;
}

tm_tensor *tm_keep(tm_tensor *t)
{
    tm_scope *s = tmi_tls.scope;
    if (!t || !s) return t;
    if (s->outer && add(s->outer, t) != TM_OK) return NULL;
    entry *e = t->flags & TMI_IN_SCOPE ? find(s, t) : NULL;
    if (!e) {
        tmi_retain(t);
        return t;
    }
    if (s->outer) s->outer->entries[s->outer->len - 1].retained = e->retained;
    take_out(s, e);
    return t;
}

/* The nearest scope that owns t, among those open on this thread. */
static entry *nearest(const tm_tensor *t, tm_scope **owner)
{
    for (tm_scope *s = tmi_tls.scope; s; s = s->outer) {
        entry *e = find(s, t);
        if (e) {
            *owner = s;
            return e;
        }
    }
    return NULL;
}

tm_tensor *tm_retain(tm_tensor *t)
{
    if (!t) return NULL;
    tm_scope *owner;
    entry *e = tmi_tls.scope && (t->flags & TMI_IN_SCOPE) ? nearest(t, &owner) : NULL;
    if (e) e->retained++;
    tmi_retain(t);
    return t;
}

void tm_release(tm_tensor *t)
{
    if (!t) return;
    tm_scope *owner;
    entry *e = tmi_tls.scope && (t->flags & TMI_IN_SCOPE) ? nearest(t, &owner) : NULL;
    if (e) {
        if (e->retained) e->retained--;
        else if (owner == tmi_tls.scope) take_out(owner, e);
    }
    tmi_release(t);
}

void tmi_barrier_enter(tmi_barrier *b)
{
    tmi_error_save(&b->error);
    b->scope = tmi_tls.scope;
    tmi_tls.scope = NULL;
}

void tmi_barrier_leave(tmi_barrier *b)
{
    while (tmi_tls.scope) close_one(tmi_tls.scope);
    tmi_tls.scope = b->scope;
    tmi_error_restore(&b->error);
}

tm_tensor_list *tmi_own_list(tm_tensor_list *l)
{
    tm_scope *s = tmi_tls.scope;
    if (!l || !s) return l;
    l->next_in_scope = s->lists;
    return s->lists = l;
}
