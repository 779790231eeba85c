/* Type promotion as PyTorch does it. Three ranks of operand: tensors with dims, 0-d tensors, Python numbers. Within a rank types are
 * joined by the table; a lower rank counts only where its category (bool < integer < float < complex) is higher. */
#include "tensor_state.h"

enum { NONE = TM_DTYPE_DEFAULT };

/* u16, u32, u64: known to the table only with themselves and with floats. */
static inline bool is_limited_unsigned(tm_dtype d) { return d == TM_U16 || d == TM_U32 || d == TM_U64; }
static inline bool is_float8(tm_dtype d) { return tmi_dtypes[d].category == 'X'; }

/* bool 0, integer 1, float 2, complex 3. */
static int category(tm_dtype d)
{
    switch (tmi_dtypes[d].category) {
    case 'B': return 0;
    case 'F': case 'X': return 2;
    case 'C': return 3;
    default: return 1;
    }
}

static tm_dtype refuse(const char *what, tm_dtype a, tm_dtype b)
{
    tmi_fail(TM_INVALID, "Promotion for %s is not supported, attempted to promote %s and %s", what, tmi_dtypes[a].type_name,
             tmi_dtypes[b].type_name);
    return TM_DTYPE_COUNT;
}

static tm_dtype join_integers(tm_dtype a, tm_dtype b)
{
    if (a != TM_U8 && b != TM_U8) return tmi_dtypes[a].size > tmi_dtypes[b].size ? a : b;
    tm_dtype other = a == TM_U8 ? b : a;
    return other == TM_I8 ? TM_I16 : other;
}

static tm_dtype join_floats(tm_dtype a, tm_dtype b)
{
    if (tmi_dtypes[a].size == tmi_dtypes[b].size) return TM_F32;   /* f16 with bf16 */
    return tmi_dtypes[a].size > tmi_dtypes[b].size ? a : b;
}

static tm_dtype join_complex(tm_dtype a, tm_dtype b)
{
    bool wide = a == TM_C128 || b == TM_C128 || a == TM_F64 || b == TM_F64;
    return wide ? TM_C128 : TM_C64;
}

tm_dtype tm_dtype_promote(tm_dtype a, tm_dtype b)
{
    if (a == b) return a;
    if (is_float8(a) || is_float8(b)) return refuse("Float8 Types", a, b);
    int ca = category(a), cb = category(b);
    if (is_limited_unsigned(a) || is_limited_unsigned(b)) {
        if (ca == 2) return a;
        if (cb == 2) return b;
        return refuse("uint16, uint32, uint64 types", a, b);
    }
    if (ca == 3 || cb == 3) return join_complex(a, b);
    if (ca != cb) return ca > cb ? a : b;
    return ca == 2 ? join_floats(a, b) : join_integers(a, b);
}

/* Joins d into the type of one rank. */
static tm_status join(uint8_t *rank, tm_dtype d)
{
    if (*rank == NONE || *rank == d) {
        *rank = (uint8_t)d;
        return TM_OK;
    }
    tm_dtype r = tm_dtype_promote((tm_dtype)*rank, d);
    if (r == TM_DTYPE_COUNT) return tm_error_status();
    *rank = (uint8_t)r;
    return TM_OK;
}

/* A number's type is the default of its category. */
static tm_dtype default_of(tm_dtype d)
{
    int c = category(d);
    if (c == 3) return tmi_complex_dtype(tm_get_default_dtype());
    return c == 2 ? tm_get_default_dtype() : d;
}

tm_status tmi_promote_tensor(tmi_promotion *p, const tm_tensor *t)
{
    tm_dtype d = (tm_dtype)t->dtype;
    if (t->flags & TMI_WRAPPED_NUMBER) return join(&p->wrapped, default_of(d));
    return join(t->ndim ? &p->dim : &p->zero, d);
}

tm_status tmi_promote_scalar(tmi_promotion *p, tm_scalar s) { return join(&p->wrapped, tmi_scalar_dtype(s)); }

/* The type of a stronger and a weaker rank together. A float meeting a weaker complex becomes the complex of its own width (halves, which
 * have none here, complex64); an integer meeting one takes the weaker type as it is. */
static tm_status combine(uint8_t strong, uint8_t weak, uint8_t *out)
{
    *out = strong == NONE ? weak : strong;
    if (strong == NONE || weak == NONE) return TM_OK;
    int cs = category((tm_dtype)strong), cw = category((tm_dtype)weak);
    if (cs == 2 && cw == 3) {
        TMI_REQUIRE(!is_float8((tm_dtype)strong), TM_INVALID, "Unknown Complex ScalarType for %s", tmi_dtypes[strong].type_name);
        *out = (uint8_t)tmi_complex_dtype((tm_dtype)strong);
    } else if (cs == 1 && cw == 3) *out = weak;
    else if (cs < 2 && (cs == 0 || cw >= 2)) return join(out, (tm_dtype)weak);
    return TM_OK;
}

tm_status tmi_promoted(const tmi_promotion *p, tm_dtype *out)
{
    uint8_t low, all;
    TMI_TRY(combine(p->zero, p->wrapped, &low));
    TMI_TRY(combine(p->dim, low, &all));
    TMI_REQUIRE(all != NONE, TM_INVALID, "result type of no operands");
    *out = (tm_dtype)all;
    return TM_OK;
}

bool tmi_can_cast(tm_dtype from, tm_dtype to)
{
    int a = category(from), b = category(to);
    if (a == 3) return b == 3;
    if (a == 2) return b >= 2;
    return a == 0 || b != 0;
}
