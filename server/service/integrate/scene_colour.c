// SPDX-License-Identifier: Apache-2.0
/* The palette's nearest colour in CIELAB. The palette is sorted by lightness, so a search goes
 * from a colour's own lightness both ways until that alone is too far: the same answer as
 * looking at all entries, for a small part of the work. */
#include <math.h>
#include <stdlib.h>

#include "server/service/integrate/integrate.h"
#include "server/service/scene/scene.h"

/* Converts to CIE 1976 L*a*b*, with D65's white. */
struct lab {
    double l, a, b;
};

struct entry {
    struct lab lab;
    uint32_t index;
};

static double linear_of(double srgb)
{
    return srgb <= 0.04045 ? srgb / 12.92 : pow((srgb + 0.055) / 1.055, 2.4);
}

static double cube_root(double t)
{
    return t > 216.0 / 24389.0 ? cbrt(t) : (24389.0 / 27.0 * t + 16.0) / 116.0;
}

static struct lab lab_of(double red, double green, double blue)
{
    double r = linear_of(red / 255.0);
    double g = linear_of(green / 255.0);
    double b = linear_of(blue / 255.0);
    double x = cube_root((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
    double y = cube_root(0.2126729 * r + 0.7151522 * g + 0.0721750 * b);
    double z = cube_root((0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883);

    return (struct lab){116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)};
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;

    if (x->lab.l != y->lab.l) {
        return x->lab.l < y->lab.l ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/* The best so far. */
struct nearest {
    double square;
    uint32_t index;
};

/* Looks at an entry; false when its lightness alone is farther than the best. */
static bool look(const struct entry *entry, const struct lab *lab,
                 struct nearest *nearest)
{
    double l = entry->lab.l - lab->l;
    double a = entry->lab.a - lab->a;
    double b = entry->lab.b - lab->b;
    double square = l * l + a * a + b * b;

    if (l * l > nearest->square) {
        return false;
    }
    if (square < nearest->square ||
        (square == nearest->square && entry->index < nearest->index)) {
        nearest->square = square;
        nearest->index = entry->index;
    }
    return true;
}

static uint32_t find(const struct entry *entries, size_t n, const struct lab *lab)
{
    struct nearest nearest = {INFINITY, 0};
    size_t low = 0;
    size_t high = n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (entries[middle].lab.l < lab->l) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (size_t i = low; i < n && look(&entries[i], lab, &nearest); i++) {
    }
    for (size_t i = low; i > 0 && look(&entries[i - 1], lab, &nearest); i--) {
    }
    return nearest.index;
}

static double clamp(float value)
{
    return value < 0 ? 0 : value > 255 ? 255 : (double)value;
}

enum vxd_status vxd_scene_nearest_colours(const struct vxd_scene_spec *spec,
                                          const float *colours, size_t n, uint16_t other,
                                          uint16_t *out, struct vxd_err *err)
{
    struct entry *entries = calloc(spec->n_palette, sizeof *entries);

    if (entries == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a palette");
    }
    for (size_t i = 0; i < spec->n_palette; i++) {
        uint32_t rgb = spec->palette[i].rgb;

        entries[i].lab = lab_of(rgb >> 16, rgb >> 8 & 0xff, rgb & 0xff);
        entries[i].index = (uint32_t)i;
    }
    qsort(entries, spec->n_palette, sizeof *entries, compare);
    for (size_t i = 0; i < n; i++) {
        const float *c = colours + 3 * i;
        struct lab lab;

        out[i] = other;
        if (isfinite(c[0]) && isfinite(c[1]) && isfinite(c[2])) {
            lab = lab_of(clamp(c[0]), clamp(c[1]), clamp(c[2]));
            out[i] = (uint16_t)find(entries, spec->n_palette, &lab);
        }
    }
    free(entries);
    return VXD_OK;
}
