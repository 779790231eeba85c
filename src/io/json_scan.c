#include "json_scan.h"

#include <string.h>

static bool fail(tmi_json *j, const char *fault)
{
    if (!j->fault) j->fault = fault;
    return false;
}

char tmi_json_peek(tmi_json *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r')) j->p++;
    return j->p < j->end ? *j->p : 0;
}

bool tmi_json_take(tmi_json *j, char c)
{
    if (j->fault || tmi_json_peek(j) != c || j->p == j->end) return fail(j, c == ':' ? "expected `:`" : "unexpected character");
    j->p++;
    return true;
}

bool tmi_json_next(tmi_json *j, char close, bool *first)
{
    if (j->fault) return false;
    char c = tmi_json_peek(j);
    if (j->p == j->end) return fail(j, "unexpected end");
    if (c == close) {
        j->p++;
        return false;
    }
    bool was_first = *first;
    *first = false;
    if (was_first) return true;
    if (!tmi_json_take(j, ',')) return fail(j, "expected `,` or a closing bracket");
    return tmi_json_peek(j) == close ? fail(j, "trailing comma") : true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Four hexadecimal digits; -1 on a fault. */
static int take_hex4(tmi_json *j)
{
    int value = 0;
    if (j->end - j->p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(*j->p++);
        if (d < 0) return -1;
        value = value * 16 + d;
    }
    return value;
}

static void add_utf8(tmi_strbuf *out, uint32_t c)
{
    char b[4];
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) b[i] = (char)(0x80 | (c & 0x3f));
    b[0] = (char)(n == 1 ? c : (0xf00 >> n) | c);
    tmi_str_addn(out, b, (size_t)n);
}

/* What follows "\u": one unit, or a surrogate pair. */
static bool take_unicode(tmi_json *j, tmi_strbuf *out)
{
    int c = take_hex4(j);
    if (c < 0) return fail(j, "invalid escape");
    if (c == 0) return fail(j, "string contains NUL");
    if (c >= 0xdc00 && c < 0xe000) return fail(j, "lone surrogate in string");
    if (c >= 0xd800 && c < 0xdc00) {
        if (j->end - j->p < 6 || j->p[0] != '\\' || j->p[1] != 'u') return fail(j, "lone surrogate in string");
        j->p += 2;
        int low = take_hex4(j);
        if (low < 0xdc00 || low >= 0xe000) return fail(j, "lone surrogate in string");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    add_utf8(out, (uint32_t)c);
    return true;
}

static bool take_escape(tmi_json *j, tmi_strbuf *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (j->p == j->end) return fail(j, "unterminated string");
    char c = *j->p++;
    if (c == 'u') return take_unicode(j, out);
    const char *at = memchr(from, c, sizeof from - 1);
    if (!at) return fail(j, "invalid escape");
    tmi_str_addn(out, &to[at - from], 1);
    return true;
}

bool tmi_json_string(tmi_json *j, tmi_strbuf *out)
{
    out->len = 0;
    tmi_str_addn(out, "", 0);
    if (!tmi_json_take(j, '"')) return fail(j, "expected a string");
    for (;;) {
        const char *start = j->p;
        while (j->p < j->end && (unsigned char)*j->p >= 0x20 && *j->p != '"' && *j->p != '\\') j->p++;
        tmi_str_addn(out, start, (size_t)(j->p - start));
        if (j->p == j->end) return fail(j, "unterminated string");
        char c = *j->p++;
        if (c == '"') return out->failed ? fail(j, "out of memory") : true;
        if (c != '\\') return fail(j, "control character in string");
        if (!take_escape(j, out)) return false;
    }
}

static bool is_digit(const tmi_json *j) { return j->p < j->end && *j->p >= '0' && *j->p <= '9'; }

bool tmi_json_unsigned(tmi_json *j, uint64_t *out)
{
    if (j->fault) return false;
    tmi_json_peek(j);
    if (!is_digit(j)) return fail(j, "expected a whole number");
    const char *start = j->p;
    uint64_t x = 0;
    for (; is_digit(j); j->p++) {
        uint64_t d = (uint64_t)(*j->p - '0');
        if (x > (UINT64_MAX - d) / 10) return fail(j, "number out of range");
        x = x * 10 + d;
    }
    if (*start == '0' && j->p - start > 1) return fail(j, "number with a leading zero");
    if (j->p < j->end && (*j->p == '.' || *j->p == 'e' || *j->p == 'E')) return fail(j, "expected a whole number");
    *out = x;
    return true;
}

static bool skip_digits(tmi_json *j)
{
    if (!is_digit(j)) return fail(j, "invalid number");
    while (is_digit(j)) j->p++;
    return true;
}

static bool skip_number(tmi_json *j)
{
    if (*j->p == '-') j->p++;
    const char *start = j->p;
    if (!skip_digits(j)) return false;
    if (*start == '0' && j->p - start > 1) return fail(j, "number with a leading zero");
    if (j->p < j->end && *j->p == '.') {
        j->p++;
        if (!skip_digits(j)) return false;
    }
    if (j->p < j->end && (*j->p == 'e' || *j->p == 'E')) {
        j->p++;
        if (j->p < j->end && (*j->p == '+' || *j->p == '-')) j->p++;
        return skip_digits(j);
    }
    return true;
}

static bool skip_word(tmi_json *j, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0) return fail(j, "unexpected character");
    j->p += n;
    return true;
}

static bool skip_string(tmi_json *j)
{
    tmi_strbuf text = {0};
    bool ok = tmi_json_string(j, &text);
    tmi_str_free(&text);
    return ok;
}

static bool skip_members(tmi_json *j, char open, int depth)
{
    bool first = true;
    j->p++;
    while (tmi_json_next(j, open == '{' ? '}' : ']', &first)) {
        if (open == '{' && !(skip_string(j) && tmi_json_take(j, ':'))) return false;
        if (!tmi_json_skip(j, depth - 1)) return false;
    }
    return !j->fault;
}

bool tmi_json_skip(tmi_json *j, int depth)
{
    if (j->fault) return false;
    if (depth <= 0) return fail(j, "nested too deeply");
    char c = tmi_json_peek(j);
    if (c == '{' || c == '[') return skip_members(j, c, depth);
    if (c == '"') return skip_string(j);
    if (c == 't') return skip_word(j, "true");
    if (c == 'f') return skip_word(j, "false");
    if (c == 'n') return skip_word(j, "null");
    if (c == '-' || is_digit(j)) return skip_number(j);
    return fail(j, j->p == j->end ? "unexpected end" : "unexpected character");
}

bool tmi_json_done(tmi_json *j)
{
    tmi_json_peek(j);
    return j->p == j->end && !j->fault ? true : fail(j, "trailing characters");
}

/* Bytes of the sequence that starts at s, 0 if it is malformed: overlong forms, surrogates and values above U+10FFFF are. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80) return 1;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
    return len;
}

size_t tmi_utf8_valid(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        size_t len = utf8_length((const unsigned char *)s + i, n - i);
        if (!len) return i;
        i += len;
    }
    return n;
}

void tmi_json_quote(tmi_strbuf *out, const char *s)
{
    tmi_str_add(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') tmi_str_addf(out, "\\%c", c);
        else if (c < 0x20) tmi_str_addf(out, "\\u%04x", c);
        else tmi_str_addn(out, s, 1);
    }
    tmi_str_add(out, "\"");
}
