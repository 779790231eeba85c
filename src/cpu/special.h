/* Special functions of one double, for kernels that have no vector form. Values at poles and outside of the domain are PyTorch's. */
#ifndef TMK_SPECIAL_H
#define TMK_SPECIAL_H

double tmk_lgamma(double x);
double tmk_digamma(double x);
double tmk_trigamma(double x);
double tmk_polygamma(double order, double x);   /* order a whole number >= 0 */
double tmk_zeta(double s, double q);            /* Hurwitz: sum over k >= 0 of (q + k)^-s */
double tmk_erfinv(double y);
double tmk_erfcx(double x);                     /* exp(x^2) erfc(x) */
double tmk_ndtri(double p);                     /* inverse of the normal distribution function */
double tmk_log_ndtr(double x);                  /* its logarithm */
double tmk_i0(double x);                        /* modified Bessel functions; e: times exp(-|x|) */
double tmk_i0e(double x);
double tmk_i1(double x);
double tmk_i1e(double x);

#endif
