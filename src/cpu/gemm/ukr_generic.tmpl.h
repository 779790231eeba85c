/* Micro-kernels in plain C with 16-byte vectors, for machines without assembler ones. Included with T, LANES, FMA and NAME defined.
 * Four rows at most; the row and vector counts are constants after inlining. */

typedef T NAME(vec) __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) void NAME(tile)(const tmi_ukr_args *g, int rows, int vectors, T alpha)
{
    NAME(vec) acc[4][4] = {{{0}}};
    const char *a = g->a, *b = g->b;
    for (int64_t k = 0; k < g->k; k++, a += g->a_cs, b += g->b_rs) {
        NAME(vec) bv[4] = {{0}};
        for (int v = 0; v < vectors; v++) memcpy(&bv[v], b + 16 * v, 16);
        for (int r = 0; r < rows; r++) {
            NAME(vec) av = (NAME(vec)){0} + *(const T *)(const void *)(a + r * g->a_rs);
            for (int v = 0; v < vectors; v++) acc[r][v] = FMA(av, bv[v], acc[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        char *c = (char *)g->c + r * g->c_rs;
        for (int v = 0; v < vectors; v++) {
            NAME(vec) old = {0}, out = acc[r][v] * alpha;
            if (g->accumulate) memcpy(&old, c + 16 * v, 16), out += old;
            memcpy(c + 16 * v, &out, 16);
        }
    }
}

static void NAME(k1x1)(const tmi_ukr_args *g) { NAME(tile)(g, 1, 1, ALPHA(g)); }
static void NAME(k2x1)(const tmi_ukr_args *g) { NAME(tile)(g, 2, 1, ALPHA(g)); }
static void NAME(k3x1)(const tmi_ukr_args *g) { NAME(tile)(g, 3, 1, ALPHA(g)); }
static void NAME(k4x1)(const tmi_ukr_args *g) { NAME(tile)(g, 4, 1, ALPHA(g)); }
static void NAME(k1x2)(const tmi_ukr_args *g) { NAME(tile)(g, 1, 2, ALPHA(g)); }
static void NAME(k2x2)(const tmi_ukr_args *g) { NAME(tile)(g, 2, 2, ALPHA(g)); }
static void NAME(k3x2)(const tmi_ukr_args *g) { NAME(tile)(g, 3, 2, ALPHA(g)); }
static void NAME(k4x2)(const tmi_ukr_args *g) { NAME(tile)(g, 4, 2, ALPHA(g)); }
static void NAME(k1x4)(const tmi_ukr_args *g) { NAME(tile)(g, 1, 4, ALPHA(g)); }
static void NAME(k2x4)(const tmi_ukr_args *g) { NAME(tile)(g, 2, 4, ALPHA(g)); }

static tmi_ukr *const NAME(kernels)[TMI_UKR_KINDS * 4] = {
    NAME(k1x1), NAME(k2x1), NAME(k3x1), NAME(k4x1), NAME(k1x2), NAME(k2x2), NAME(k3x2), NAME(k4x2), NAME(k1x4), NAME(k2x4),
};
const tmi_ukr_table NAME(table) = {.rows = 4, .lanes = LANES, .kernels = NAME(kernels)};

#undef T
#undef LANES
#undef FMA
#undef ALPHA
#undef NAME
