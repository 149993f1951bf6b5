// SPDX-License-Identifier: Apache-2.0
/* Compares contacts of spheres, boxes and capsules with a voxel's cube, as gpu/field finds them,
 * with FCL's (Debian: libfcl-dev), pair by pair; with --golden writes pairs for the unit test.
 * Pairs that touch within a millionth of a voxel are left out: there FCL's answer is that of
 * rounding. Where FCL is installed it is built as test_gpu_field_fcl, of 100,000 pairs
 * (tests/unit/gpu.cmake).
 * usage: compare_fcl [PAIRS] [--golden N > tests/data/field_contacts.txt] */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcl/fcl.h>

extern "C++" {
#include "gpu/field/collide_math.h"
}

namespace
{

uint64_t random_state = 1;

double random_unit()
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* A shape near the voxel (3, 3, 3) of a field of 8^3 voxels; a third of the boxes along the
 * axes. */
vxd_field_shape random_shape(int i)
{
    vxd_field_shape shape = {};
    double length = 0;

    shape.kind = i % 3;
    shape.r = 0.05 + 1.5 * random_unit();
    for (int axis = 0; axis < 3; axis++) {
        shape.a[axis] = 3.5 + 6 * (random_unit() - 0.5);
        shape.b[axis] = shape.kind == VXD_FIELD_BOX ? 0.05 + 1.5 * random_unit()
                                                    : 3.5 + 6 * (random_unit() - 0.5);
    }
    for (double &q : shape.q) {
        q = random_unit() - 0.5;
        length += q * q;
    }
    for (double &q : shape.q) {
        q /= std::sqrt(length);
    }
    if (i % 9 == 1) {
        const double none[4] = {0, 0, 0, 1};
        std::memcpy(shape.q, none, sizeof none);
    }
    return shape;
}

fcl::CollisionObjectd object_of(const vxd_field_shape &shape, double grown)
{
    const fcl::Vector3d a(shape.a[0], shape.a[1], shape.a[2]);
    const fcl::Vector3d b(shape.b[0], shape.b[1], shape.b[2]);
    fcl::Transform3d at = fcl::Transform3d::Identity();

    at.translation() = a;
    if (shape.kind == VXD_FIELD_SPHERE) {
        return fcl::CollisionObjectd(std::make_shared<fcl::Sphered>(shape.r + grown), at);
    }
    if (shape.kind == VXD_FIELD_BOX) {
        at.linear() = Eigen::Quaterniond(shape.q[3], shape.q[0], shape.q[1], shape.q[2])
                          .toRotationMatrix();
        return fcl::CollisionObjectd(
            std::make_shared<fcl::Boxd>(2 * (shape.b[0] + grown),
                                        2 * (shape.b[1] + grown),
                                        2 * (shape.b[2] + grown)),
            at);
    }
    at.translation() = (a + b) / 2;
    at.linear() = Eigen::Quaterniond::FromTwoVectors(fcl::Vector3d::UnitZ(), b - a)
                      .toRotationMatrix();
    return fcl::CollisionObjectd(
        std::make_shared<fcl::Capsuled>(shape.r + grown, (b - a).norm()), at);
}

bool fcl_touches(const vxd_field_shape &shape, double grown)
{
    fcl::Transform3d at = fcl::Transform3d::Identity();
    at.translation() = fcl::Vector3d(3.5, 3.5, 3.5);
    fcl::CollisionObjectd cube(std::make_shared<fcl::Boxd>(1, 1, 1), at);
    fcl::CollisionObjectd other = object_of(shape, grown);
    fcl::CollisionRequestd request;
    fcl::CollisionResultd result;

    /* libccd gives up on its default of 1e-6. */
    request.gjk_tolerance = 1e-9;
    return fcl::collide(&other, &cube, request, result) > 0;
}

bool our_touches(const vxd_field_shape &shape)
{
    vxd_field_view field = {};
    vxd_field_body body = {};
    vxd_field_shape capsule = shape;

    if (shape.kind == VXD_FIELD_SPHERE) {
        std::memcpy(capsule.b, capsule.a, sizeof capsule.b);
    }
    vxd_field_make_body(&field, &capsule, &body);
    return shape.kind == VXD_FIELD_BOX ? vxd_field_box_touches(&body, 3, 3, 3)
                                       : vxd_field_capsule_touches(&body, 3, 3, 3);
}

} // namespace

int main(int argc, char **argv)
{
    bool is_golden = argc == 3 && std::strcmp(argv[1], "--golden") == 0;
    long n = argc > 1 ? std::strtol(argv[argc - 1], nullptr, 10) : 100000;
    long n_compared = 0;
    long n_hits = 0;
    long n_wrong = 0;

    for (long i = 0; i < n; i++) {
        vxd_field_shape shape = random_shape(static_cast<int>(i % 9));
        bool hit = fcl_touches(shape, 0);

        if (hit != fcl_touches(shape, hit ? -1e-6 : 1e-6)) {
            continue;
        }
        n_compared++;
        n_hits += hit ? 1 : 0;
        n_wrong += hit != our_touches(shape) ? 1 : 0;
        if (is_golden) {
            std::printf("%d %d", hit ? 1 : 0, shape.kind);
            for (double v : shape.a) {
                std::printf(" %.17g", v);
            }
            for (double v : shape.b) {
                std::printf(" %.17g", v);
            }
            for (double v : shape.q) {
                std::printf(" %.17g", v);
            }
            std::printf(" %.17g\n", shape.r);
        }
    }
    std::fprintf(stderr, "%ld pairs, %ld in contact by FCL, %ld otherwise by us\n",
                 n_compared, n_hits, n_wrong);
    return n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
