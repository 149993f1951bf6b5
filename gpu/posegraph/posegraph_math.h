// SPDX-License-Identifier: Apache-2.0
/* Rigid motions, their logarithms and derivatives, and the robust costs.
 *
 * source  Barfoot, State Estimation for Robotics (2017), chapter 7: Jacobians of SE(3) in
 *         equations 7.76 to 7.95, with (translation, rotation) */
#ifndef VXD_GPU_POSEGRAPH_POSEGRAPH_MATH_H
#define VXD_GPU_POSEGRAPH_POSEGRAPH_MATH_H

#include <math.h>
#include <string.h>

#include "gpu/posegraph/posegraph.h"

/* --- vectors and 3 x 3 matrices, rows first --------------------------------------------------- */

static inline void vxd_cross(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static inline void vxd_skew(const double v[3], double out[9])
{
    out[0] = 0;
    out[1] = -v[2];
    out[2] = v[1];
    out[3] = v[2];
    out[4] = 0;
    out[5] = -v[0];
    out[6] = -v[1];
    out[7] = v[0];
    out[8] = 0;
}

static inline void vxd_multiply3(const double a[9], const double b[9], double out[9])
{
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            out[3 * r + c] = a[3 * (size_t)r] * b[c] + a[3 * (size_t)r + 1] * b[3 + c] +
                             a[3 * (size_t)r + 2] * b[6 + c];
        }
    }
}

static inline void vxd_apply3(const double a[9], const double v[3], double out[3])
{
    for (int r = 0; r < 3; r++) {
        out[r] = a[3 * (size_t)r] * v[0] + a[3 * (size_t)r + 1] * v[1] +
                 a[3 * (size_t)r + 2] * v[2];
    }
}

/* --- quaternions and rigid motions ------------------------------------------------------------ */

static inline void vxd_quaternion_multiply(const double a[4], const double b[4],
                                           double out[4])
{
    out[0] = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1];
    out[1] = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0];
    out[2] = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3];
    out[3] = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2];
}

static inline void vxd_quaternion_normalize(double q[4])
{
    double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);

    for (int i = 0; i < 4; i++) {
        q[i] /= length;
    }
}

static inline void vxd_quaternion_matrix(const double q[4], double out[9])
{
    double x = q[0];
    double y = q[1];
    double z = q[2];
    double w = q[3];

    out[0] = 1 - 2 * (y * y + z * z);
    out[1] = 2 * (x * y - z * w);
    out[2] = 2 * (x * z + y * w);
    out[3] = 2 * (x * y + z * w);
    out[4] = 1 - 2 * (x * x + z * z);
    out[5] = 2 * (y * z - x * w);
    out[6] = 2 * (x * z - y * w);
    out[7] = 2 * (y * z + x * w);
    out[8] = 1 - 2 * (x * x + y * y);
}

static inline void vxd_matrix_quaternion(const double r[9], double q[4])
{
    double trace = r[0] + r[4] + r[8];

    if (trace > 0) {
        double s = 2 * sqrt(trace + 1);

        q[3] = s / 4;
        q[0] = (r[7] - r[5]) / s;
        q[1] = (r[2] - r[6]) / s;
        q[2] = (r[3] - r[1]) / s;
    } else {
        int i = r[0] > r[4] ? (r[0] > r[8] ? 0 : 2) : (r[4] > r[8] ? 1 : 2);
        int j = (i + 1) % 3;
        int k = (i + 2) % 3;
        double s = 2 * sqrt(1 + r[4 * (size_t)i] - r[4 * (size_t)j] - r[4 * (size_t)k]);

        q[i] = s / 4;
        q[j] = (r[3 * j + i] + r[3 * i + j]) / s;
        q[k] = (r[3 * k + i] + r[3 * i + k]) / s;
        q[3] = (r[3 * k + j] - r[3 * j + k]) / s;
    }
    vxd_quaternion_normalize(q);
}

/* v turned by q. */
static inline void vxd_quaternion_rotate(const double q[4], const double v[3],
                                         double out[3])
{
    double u[3];
    double w[3];

    vxd_cross(q, v, u);
    for (int i = 0; i < 3; i++) {
        u[i] = 2 * u[i];
    }
    vxd_cross(q, u, w);
    for (int i = 0; i < 3; i++) {
        out[i] = v[i] + q[3] * u[i] + w[i];
    }
}

static inline void vxd_rigid_multiply(const struct vxd_rigid *a,
                                      const struct vxd_rigid *b, struct vxd_rigid *out)
{
    struct vxd_rigid r;

    vxd_quaternion_multiply(a->q, b->q, r.q);
    vxd_quaternion_rotate(a->q, b->t_m, r.t_m);
    for (int i = 0; i < 3; i++) {
        r.t_m[i] += a->t_m[i];
    }
    *out = r;
}

static inline void vxd_rigid_invert(const struct vxd_rigid *a, struct vxd_rigid *out)
{
    struct vxd_rigid r = {{-a->t_m[0], -a->t_m[1], -a->t_m[2]},
                          {-a->q[0], -a->q[1], -a->q[2], a->q[3]}};
    double t[3];

    vxd_quaternion_rotate(r.q, r.t_m, t);
    memcpy(r.t_m, t, sizeof t);
    *out = r;
}

/* inverse(a) b */
static inline void vxd_rigid_between(const struct vxd_rigid *a, const struct vxd_rigid *b,
                                     struct vxd_rigid *out)
{
    double conjugate[4] = {-a->q[0], -a->q[1], -a->q[2], a->q[3]};
    double t[3] = {b->t_m[0] - a->t_m[0], b->t_m[1] - a->t_m[1], b->t_m[2] - a->t_m[2]};
    struct vxd_rigid r = {{0, 0, 0}, {0, 0, 0, 1}};

    vxd_quaternion_multiply(conjugate, b->q, r.q);
    vxd_quaternion_rotate(conjugate, t, r.t_m);
    *out = r;
}

/* --- logarithms and exponentials -------------------------------------------------------------- */

static inline void vxd_rotation_log(const double q[4], double out[3])
{
    double sign = q[3] < 0 ? -1.0 : 1.0;
    double length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
    double w = sign * q[3];
    double scale = length > 1e-9 ? 2 * atan2(length, w) / length : 2 / w;

    for (int i = 0; i < 3; i++) {
        out[i] = sign * scale * q[i];
    }
}

static inline void vxd_rotation_exp(const double v[3], double q[4])
{
    double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    double angle = sqrt(square);
    double scale = angle > 1e-5 ? sin(angle / 2) / angle : 0.5 - square / 48;

    for (int i = 0; i < 3; i++) {
        q[i] = scale * v[i];
    }
    q[3] = cos(angle / 2);
}

/* 1/t^2 - (1 + cos t) / (2 t sin t), the factor of the squared skew matrix in the inverse of the
 * left Jacobian of SO(3). */
static inline double vxd_log_factor(double square)
{
    double angle = sqrt(square);

    if (square < 1e-4) {
        return 1.0 / 12 + square / 720 + square * square / 30240;
    }
    return (1 - 0.5 * angle / tan(0.5 * angle)) / square;
}

/* Inverse of the left Jacobian of SO(3). */
static inline void vxd_left_jacobian_inverse3(const double v[3], double out[9])
{
    double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    double b = vxd_log_factor(square);
    double k[9];

    vxd_skew(v, k);
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            out[3 * r + c] =
                (r == c ? 1 - b * square : 0) - 0.5 * k[3 * r + c] + b * v[r] * v[c];
        }
    }
}

static inline void vxd_rigid_log(const struct vxd_rigid *a, double out[6])
{
    double j[9];

    vxd_rotation_log(a->q, out + 3);
    vxd_left_jacobian_inverse3(out + 3, j);
    vxd_apply3(j, a->t_m, out);
}

static inline void vxd_rigid_exp(const double x[6], struct vxd_rigid *out)
{
    const double *v = x + 3;
    double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    double angle = sqrt(square);
    double a = square < 1e-4 ? 0.5 - square / 24 + square * square / 720
                             : (1 - cos(angle)) / square;
    double b = square < 1e-4 ? 1.0 / 6 - square / 120 + square * square / 5040
                             : (angle - sin(angle)) / (square * angle);
    double u[3];
    double w[3];

    vxd_rotation_exp(v, out->q);
    vxd_cross(v, x, u);
    vxd_cross(v, u, w);
    for (int i = 0; i < 3; i++) {
        out->t_m[i] = x[i] + a * u[i] + b * w[i];
    }
}

/* T Exp(x) */
static inline void vxd_rigid_move(const struct vxd_rigid *a, const double x[6],
                                  struct vxd_rigid *out)
{
    struct vxd_rigid step;

    vxd_rigid_exp(x, &step);
    vxd_rigid_multiply(a, &step, out);
    vxd_quaternion_normalize(out->q);
}

/* The block Q of the left Jacobian of SE(3) (Barfoot, equation 7.86). */
static inline void vxd_jacobian_q(const double x[6], double out[9])
{
    const double *v = x + 3;
    double square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    double angle = sqrt(square);
    double c1 = 1.0 / 6 - square / 120 + square * square / 5040;
    double c2 = 1.0 / 24 - square / 720 + square * square / 40320;
    double c3 = 1.0 / 120 - square / 2520 + square * square / 120960;
    double p[9];
    double r[9];
    double rp[9];
    double pr[9];
    double prp[9];
    double ppr[9];
    double rpp[9];
    double prpp[9];
    double pprp[9];

    if (square > 0.01) {
        double sine = sin(angle);
        double cosine = cos(angle);

        c1 = (angle - sine) / (square * angle);
        c2 = (square + 2 * cosine - 2) / (2 * square * square);
        c3 = (2 * angle - 3 * sine + angle * cosine) / (2 * square * square * angle);
    }
    vxd_skew(x, r);
    vxd_skew(v, p);
    vxd_multiply3(p, r, pr);
    vxd_multiply3(r, p, rp);
    vxd_multiply3(pr, p, prp);
    vxd_multiply3(p, pr, ppr);
    vxd_multiply3(rp, p, rpp);
    vxd_multiply3(prp, p, prpp);
    vxd_multiply3(p, prp, pprp);
    for (int i = 0; i < 9; i++) {
        out[i] = 0.5 * r[i] + c1 * (pr[i] + rp[i] + prp[i]) +
                 c2 * (ppr[i] + rpp[i] - 3 * prp[i]) + c3 * (prpp[i] + pprp[i]);
    }
}

/* d Log(A Exp(x)) / dx at 0, where e = Log(A): the inverse of the right Jacobian of SE(3). It is
 * [J, B; 0, J], rows first; out is 6 x 6. */
static inline void vxd_right_jacobian_inverse(const double e[6], double out[36])
{
    double minus[6] = {-e[0], -e[1], -e[2], -e[3], -e[4], -e[5]};
    double j[9];
    double q[9];
    double jq[9];
    double b[9];

    vxd_left_jacobian_inverse3(minus + 3, j);
    vxd_jacobian_q(minus, q);
    vxd_multiply3(j, q, jq);
    vxd_multiply3(jq, j, b);
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++) {
            out[6 * r + c] = j[3 * r + c];
            out[6 * r + c + 3] = -b[3 * r + c];
            out[6 * (r + 3) + c] = 0;
            out[6 * (r + 3) + c + 3] = j[3 * r + c];
        }
    }
}

/* The adjoint of a motion: A Exp(x) = Exp(Ad x) A. */
static inline void vxd_rigid_adjoint(const struct vxd_rigid *a, double out[36])
{
    double r[9];
    double t[9];
    double tr[9];

    vxd_quaternion_matrix(a->q, r);
    vxd_skew(a->t_m, t);
    vxd_multiply3(t, r, tr);
    for (int i = 0; i < 3; i++) {
        for (int c = 0; c < 3; c++) {
            out[6 * i + c] = r[3 * i + c];
            out[6 * i + c + 3] = tr[3 * i + c];
            out[6 * (i + 3) + c] = 0;
            out[6 * (i + 3) + c + 3] = r[3 * i + c];
        }
    }
}

/* --- residuals --------------------------------------------------------------------------------- */

/* The residual of an edge, and T_from^-1 T_to. */
static inline void vxd_edge_residual(const struct vxd_rigid *from,
                                     const struct vxd_rigid *to,
                                     const struct vxd_rigid *Z, struct vxd_rigid *between,
                                     double e[6])
{
    struct vxd_rigid error;

    vxd_rigid_between(from, to, between);
    vxd_rigid_between(Z, between, &error);
    vxd_rigid_log(&error, e);
}

static inline double vxd_square_by(const double information[36], const double e[6])
{
    double sum = 0;

    for (int r = 0; r < 6; r++) {
        double row = 0;

        for (int c = 0; c < 6; c++) {
            row += information[6 * r + c] * e[c];
        }
        sum += e[r] * row;
    }
    return sum;
}

/* What a residual of square s costs, and the derivative of that by s, its weight. */
static inline double vxd_robust_cost(enum vxd_posegraph_robust robust, double width,
                                     double s, double *weight)
{
    double square = width * width;

    *weight = 1;
    switch (robust) {
    case VXD_POSEGRAPH_HUBER:
        if (s > square) {
            *weight = width / sqrt(s);
            return 2 * width * sqrt(s) - square;
        }
        return s;
    case VXD_POSEGRAPH_CAUCHY:
        *weight = square / (square + s);
        return square * log1p(s / square);
    case VXD_POSEGRAPH_DCS:
        if (s > square) {
            double scale = 2 * square / (square + s);

            *weight = scale * scale;
            return 3 * square - 2 * square * scale;
        }
        return s;
    case VXD_POSEGRAPH_SQUARES:
    default:
        return s;
    }
}

#endif
