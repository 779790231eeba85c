/* One conversion loop: FROM (type FT) to TO (type TT), value by CONVERT(x). */
static void TMK_CAT3(FROM, _to_, TO)(void *dst, const void *src, int64_t n)
{
    TT *d = (TT *)dst;
    const FT *s = (const FT *)src;
    TMK_IVDEP
    for (int64_t i = 0; i < n; i++) d[i] = CONVERT(s[i]);
}
#undef TO
#undef TT
#undef CONVERT
