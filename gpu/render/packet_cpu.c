// SPDX-License-Identifier: Apache-2.0
/* Rays of a packet that have the same mirrored axes go through the tree together, depth first and
 * front to back. At an inner node vector instructions find for each child, eight rays at once,
 * which rays may visit it: a bit a ray. That is decided with a margin of nothing, as planes of
 * cubes come in the order of their numbers in floating point too; in a leaf each ray goes alone,
 * by the rule. What is behind a ray's hit is left out, so a ray's first hit is its hit.
 *
 * Processors without AVX2 trace ray by ray, to the same hits. */
#include "gpu/render/packet_cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_AVX2 1
#else
#define HAS_AVX2 0
#endif

enum {
    GROUP = 8, /* rays of an instruction */
    N_GROUPS = VXD_RENDER_PACKET / GROUP,
    /* Seven children of each height wait, and the one that is looked at. */
    MAX_WAITING = 7 * VXD_RENDER_NODES + 1
};

void vxd_render_packet_begin(struct vxd_render_packet *packet)
{
    packet->active = 0;
}

void vxd_render_packet_add(struct vxd_render_packet *packet, int i,
                           const struct vxd_render_origin *origin,
                           const float direction[3], int depth)
{
    const struct vxd_render_ray *ray = &packet->rays[i];

    packet->active |= (uint64_t)1 << i;
    packet->origins[i] = *origin;
    memcpy(packet->directions[i], direction, sizeof packet->directions[i]);
    packet->rays[i] = vxd_render_ray_of(origin, direction, depth);
    for (int axis = 0; axis < 3; axis++) {
        packet->cells[axis][i] = ray->cell[axis];
        packet->offsets[axis][i] = ray->offset[axis];
        packet->inverses[axis][i] = ray->inverse[axis];
    }
}

static uint64_t trace_each(const struct vxd_svdag_view *view, uint32_t root,
                           struct vxd_render_packet *packet, bool needs_hits)
{
    uint64_t hits = 0;
    uint32_t nodes[VXD_RENDER_NODES];

    for (uint64_t rest = packet->active; rest != 0; rest &= rest - 1) {
        int i = vxd_svdag_low_bit(rest);

        if (vxd_render_trace(view, root, &packet->rays[i], &packet->limit, nodes, 1,
                             needs_hits ? &packet->hits[i] : NULL)) {
            hits |= (uint64_t)1 << i;
        }
    }
    return hits;
}

#if HAS_AVX2

/* A cube that rays may visit; its place is mirrored. */
struct waiting {
    uint64_t active;
    uint32_t ref;
    uint32_t place[3];
    int height;
};

/* Which of eight rays may visit each child of a cube, of those in `present`, a mirrored mask. */
__attribute__((target("avx2"))) static void
find_visits(const struct vxd_render_packet *packet, const struct waiting *cube,
            unsigned present, int group, uint64_t visits[8])
{
    const uint32_t half = (uint32_t)1 << (cube->height - 1);
    const int first = GROUP * group;
    __m256 t[3][3];

    for (int axis = 0; axis < 3; axis++) {
        const __m256 cell = _mm256_loadu_ps(&packet->cells[axis][first]);
        const __m256 offset = _mm256_loadu_ps(&packet->offsets[axis][first]);
        const __m256 inverse = _mm256_loadu_ps(&packet->inverses[axis][first]);

        for (uint32_t k = 0; k < 3; k++) {
            __m256 plane = _mm256_set1_ps((float)(int32_t)(cube->place[axis] + k * half));

            t[axis][k] =
                _mm256_mul_ps(_mm256_sub_ps(_mm256_sub_ps(plane, cell), offset), inverse);
        }
    }
    for (; present != 0; present &= present - 1) {
        int octant = vxd_svdag_low_bit(present);
        int x = octant >> 2;
        int y = octant >> 1 & 1;
        int z = octant & 1;
        __m256 in =
            _mm256_max_ps(_mm256_max_ps(t[0][x], t[1][y]),
                          _mm256_max_ps(t[2][z], _mm256_set1_ps(packet->limit.least)));
        __m256 out = _mm256_min_ps(_mm256_min_ps(t[0][x + 1], t[1][y + 1]), t[2][z + 1]);
        unsigned touched =
            (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(in, out, _CMP_LE_OQ));

        visits[octant] |= (uint64_t)touched << (GROUP * group);
    }
}

/* The octants, mirrored by `flip`, of a mask. */
static unsigned mirrored(unsigned mask, int flip)
{
    unsigned out = 0;

    for (; mask != 0; mask &= mask - 1) {
        out |= 1u << (vxd_svdag_low_bit(mask) ^ flip);
    }
    return out;
}

/* Puts the children of an inner node that rays may visit on the stack, the farthest first; returns
 * how many wait then. */
static int expand_packet(const struct vxd_svdag_view *view,
                         const struct vxd_render_packet *packet, int flip,
                         const struct waiting *cube, struct waiting *stack, int n)
{
    uint32_t head = vxd_svdag_words(view, cube->ref)[0];
    uint64_t visits[8] = {0};
    unsigned present = mirrored(head & 0xffu, flip);
    int height = cube->height - 1;

    if ((head & VXD_SVDAG_HAS_OCCUPIED) == 0) {
        return n;
    }
    for (int group = 0; group < N_GROUPS; group++) {
        if ((cube->active >> (GROUP * group) & 0xffu) != 0) {
            find_visits(packet, cube, present, group, visits);
        }
    }
    for (int octant = 7; octant >= 0; octant--) {
        uint64_t active = visits[octant] & cube->active;

        if (active != 0) {
            struct waiting *child = &stack[n++];

            child->active = active;
            child->ref = vxd_svdag_child_of(view, cube->ref, octant ^ flip);
            child->height = height;
            for (int axis = 0; axis < 3; axis++) {
                child->place[axis] =
                    cube->place[axis] | (uint32_t)(octant >> (2 - axis) & 1) << height;
            }
        }
    }
    return n;
}

/* Ray i in a leaf or a uniform cube: true where it hits something there. */
static bool end_ray(const struct vxd_svdag_view *view, struct vxd_render_packet *packet,
                    int i, const struct waiting *cube, uint64_t occupied, bool needs_hits,
                    bool *is_beyond)
{
    const struct vxd_render_ray *ray = &packet->rays[i];
    struct vxd_render_walk walk = {
        {cube->place[0], cube->place[1], cube->place[2]}, 0, VXD_RENDER_START};
    uint32_t changed;

    *is_beyond = false;
    if (!vxd_render_enter(ray, cube->height, &walk)) {
        return false;
    }
    if (vxd_svdag_is_node(cube->ref)) {
        if (!vxd_render_leaf(ray, occupied, &walk, &changed)) {
            return false;
        }
    } else if (needs_hits) {
        (void)vxd_render_settle(ray, &packet->limit, cube->height, &walk);
    }
    *is_beyond = !(walk.t <= packet->limit.most);
    if (needs_hits && !*is_beyond) {
        vxd_render_report(view, ray, &walk, cube->ref, 0, &packet->hits[i]);
    }
    return !*is_beyond;
}

/* Rays of one `flip`. */
static uint64_t trace_flip(const struct vxd_svdag_view *view, uint32_t root,
                           struct vxd_render_packet *packet, uint64_t active, int flip,
                           bool needs_hits)
{
    struct waiting stack[MAX_WAITING];
    uint64_t open = active; /* rays that have not hit anything yet */
    uint64_t hits = 0;
    int n = 1;

    stack[0] = (struct waiting){active, root, {0, 0, 0}, view->depth};
    while (n > 0 && open != 0) {
        struct waiting cube = stack[--n];
        uint64_t occupied = ~(uint64_t)0;

        cube.active &= open;
        if (cube.active == 0) {
            continue;
        }
        if (vxd_svdag_is_node(cube.ref) && cube.height > VXD_SVDAG_LEAF_HEIGHT) {
            n = expand_packet(view, packet, flip, &cube, stack, n);
            continue;
        }
        if (vxd_svdag_is_node(cube.ref)) {
            occupied = vxd_render_leaf_mask(view, cube.ref);
        } else if (vxd_svdag_uniform_state(view, cube.ref) != VXD_SVDAG_OCCUPIED) {
            continue;
        }
        for (; occupied != 0 && cube.active != 0; cube.active &= cube.active - 1) {
            int i = vxd_svdag_low_bit(cube.active);
            bool is_beyond;

            if (end_ray(view, packet, i, &cube, occupied, needs_hits, &is_beyond)) {
                hits |= (uint64_t)1 << i;
                open &= ~((uint64_t)1 << i);
            } else if (is_beyond) {
                open &= ~((uint64_t)1 << i);
            }
        }
    }
    return hits;
}

static uint64_t trace_packet(const struct vxd_svdag_view *view, uint32_t root,
                             struct vxd_render_packet *packet, bool needs_hits)
{
    uint64_t hits = 0;

    for (uint64_t rest = packet->active; rest != 0;) {
        int flip = packet->rays[vxd_svdag_low_bit(rest)].flip;
        uint64_t same = 0;

        for (uint64_t i = rest; i != 0; i &= i - 1) {
            if (packet->rays[vxd_svdag_low_bit(i)].flip == flip) {
                same |= i & (~i + 1);
            }
        }
        hits |= trace_flip(view, root, packet, same, flip, needs_hits);
        rest &= ~same;
    }
    return hits;
}

#endif

uint64_t vxd_render_packet_trace(const struct vxd_svdag_view *view, uint32_t root,
                                 struct vxd_render_packet *packet, bool needs_hits)
{
#if HAS_AVX2
    /* With a limit of detail rays end at cubes of different sizes, and in a clip box they begin at
     * different places, each by itself. */
    if (packet->limit.detail_base <= 0 && packet->limit.detail_slope <= 0 &&
        packet->limit.clip == NULL && __builtin_cpu_supports("avx2")) {
        return trace_packet(view, root, packet, needs_hits);
    }
#endif
    return trace_each(view, root, packet, needs_hits);
}
