#!/usr/bin/env python3
"""Prints the polynomial coefficients that src/cpu/isa/vec_math_*.h use (needs mpmath).

Each fit interpolates at Chebyshev nodes in high precision, weighted, which is within a small factor of the best polynomial; leading
coefficients that are exact in the series stay outside of the fit. After rounding to the target type the largest weighted error is printed."""
import mpmath as mp

mp.mp.dps = 60


def nodes(a, b, n):
    return [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]


def round_to(x, single):
    if single:
        import struct
        return mp.mpf(struct.unpack("f", struct.pack("f", float(x)))[0])
    return mp.mpf(float(x))


def fit(name, g, a, b, degree, single, scale=lambda u: mp.mpf(1)):
    """g(u) ~ polynomial of `degree` on [a, b]. scale(u): what an error of 1 in g means in the final result, relatively."""
    a, b = mp.mpf(a), mp.mpf(b)
    xs = nodes(a, b, degree + 1)
    m = mp.matrix(degree + 1, degree + 1)
    v = mp.matrix(degree + 1, 1)
    for i, x in enumerate(xs):
        for j in range(degree + 1):
            m[i, j] = x ** j
        v[i] = g(x)
    c = [round_to(x, single) for x in mp.lu_solve(m, v)]
    worst = max(abs((mp.polyval(c[::-1], x) - g(x)) * scale(x)) for x in nodes(a, b, 400))
    print(f"{name}: degree {degree}, {'f32' if single else 'f64'}, error {mp.nstr(worst, 3)}")
    print("   ", ", ".join((f"{float(x):.9g}f" if single else f"{float(x):.17g}") for x in c))


def at0(f, limit):
    return lambda u: limit if abs(u) < mp.mpf(10) ** -25 else f(u)


def main():
    h = mp.log(2) / 2 * mp.mpf("1.0005")
    q = at0(lambda r: (mp.expm1(r) - r) / r ** 2, mp.mpf(1) / 2)
    fit("exp: (e^r - 1 - r) / r^2", q, -h, h, 4, True, lambda r: r ** 2)
    fit("exp: (e^r - 1 - r) / r^2", q, -h, h, 9, False, lambda r: r ** 2)

    f0, f1 = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1
    p = at0(lambda f: (mp.log1p(f) - f + f * f / 2) / f ** 3, mp.mpf(1) / 3)
    fit("log: (log(1+f) - f + f^2/2) / f^3", p, f0, f1, 8, True, lambda f: f ** 3 / mp.log1p(f) if f else 0)
    # s = f / (2 + f), z = s^2: log(1+f) = 2 atanh(s) = 2 s + s z R(z)
    r = at0(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, mp.mpf(2) / 3)
    z1 = (f1 / (2 + f1)) ** 2
    fit("log: (2 atanh(s)/s - 2) / z", r, 0, z1, 6, False, lambda z: z / 2)
    r2 = at0(lambda z: ((2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z - mp.mpf(2) / 3) / z, mp.mpf(2) / 5)
    fit("pow: after 2/3 z", r2, 0, z1, 7, False, lambda z: z * z / 2)
    fit("log, short: (2 atanh(s)/s - 2) / z", r, 0, z1, 4, False, lambda z: z / 2)
    fit("exp, short: (e^r - 1 - r) / r^2", q, -h, h, 5, False, lambda r: r ** 2)

    x1 = mp.mpf("0.921875")
    e = at0(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1)
    fit("erf, small: erf(x)/x - 1, z = x^2", e, 0, x1 ** 2, 6, True, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)) if z else 1)
    fit("erf, large: -log(erfc(t)), u = t - 1", lambda u: -mp.log(mp.erfc(u + 1)), x1 - 1, 3, 9, True, lambda u: mp.erfc(u + 1))
    e1 = at0(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1)
    fit("erf, small", e1, 0, 1, 11, False, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)) if z else 1)
    k = mp.mpf(3)
    to_x = lambda t: k * (1 + t) / (1 - t)
    m = lambda x: (x - k) / (x + k)
    fit("erfc: e^(x^2) erfc(x) (x + 3), t = (x-3)/(x+3)", lambda t: mp.exp(to_x(t) ** 2) * mp.erfc(to_x(t)) * (to_x(t) + k),
        m(mp.mpf(1)), m(mp.mpf(6)), 16, False,
        lambda t: mp.erfc(to_x(t)))
    fit("erfcx, wide, t = (x-3)/(x+3)", lambda t: mp.exp(to_x(t) ** 2) * mp.erfc(to_x(t)) * (to_x(t) + k), m(mp.mpf("0.5")), m(mp.mpf(28)), 22, False,
        lambda t: 1 / (mp.exp(to_x(t) ** 2) * mp.erfc(to_x(t)) * (to_x(t) + k)))

    w = (mp.pi / 4 * mp.mpf("1.001")) ** 2
    s = at0(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mp.mpf(1) / 6)
    c = at0(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2, mp.mpf(1) / 24)
    fit("sin: (sin(r)/r - 1) / z", s, 0, w, 3, True, lambda z: z)
    fit("cos: (cos(r) - 1 + z/2) / z^2", c, 0, w, 2, True, lambda z: z ** 2 * mp.sqrt(2))
    fit("sin: (sin(r)/r - 1) / z", s, 0, w, 5, False, lambda z: z)
    fit("cos: (cos(r) - 1 + z/2) / z^2", c, 0, w, 5, False, lambda z: z ** 2 * mp.sqrt(2))

    at = at0(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mp.mpf(1) / 3)
    fit("atan, short, |x| <= tan(pi/8)", at, 0, (mp.sqrt(2) - 1) ** 2, 5, False, lambda z: z)
    asn = at0(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mp.mpf(1) / 6)
    fit("asin, short, |x| <= 1/2", asn, 0, mp.mpf(1) / 4, 7, False, lambda z: z)

    for label, x in (("ln2", mp.log(2)), ("pi/2", mp.pi / 2)):
        for single, n in ((True, 3), (False, 3)):
            parts, rest = [], x
            for _ in range(n):
                parts.append(round_to(rest, single))
                rest -= parts[-1]
            print(label, "f32" if single else "f64", [float(y).hex() for y in parts])
    print("log2e", mp.nstr(1 / mp.log(2), 20), "2/pi", mp.nstr(2 / mp.pi, 20), "2/3 parts", float(mp.mpf(2) / 3).hex(),
          float(mp.mpf(2) / 3 - mp.mpf(float(mp.mpf(2) / 3))).hex())


if __name__ == "__main__":
    main()
