// SPDX-License-Identifier: Apache-2.0
#include "server/registry/scenes/scene_ages.h"

#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

static uint64_t keep_ns(uint64_t keep_seconds)
{
    return keep_seconds < UINT64_MAX / NS_PER_S ? keep_seconds * NS_PER_S : UINT64_MAX;
}

static uint64_t step_ns(uint64_t keep_seconds)
{
    uint64_t step = keep_ns(keep_seconds) / VXD_SCENE_AGE_STEPS;

    return step > NS_PER_S ? step : NS_PER_S;
}

bool vxd_scene_age_is_due(const struct vxd_scene_ages *ages, uint64_t keep_seconds,
                          uint64_t version, uint64_t run_ns)
{
    const struct vxd_scene_age_mark *last = &ages->marks[ages->n > 0 ? ages->n - 1 : 0];

    if (keep_seconds == 0) {
        return false;
    }
    return ages->n == 0 || (version > last->version && run_ns >= last->run_ns &&
                            run_ns - last->run_ns >= step_ns(keep_seconds));
}

void vxd_scene_age_add(struct vxd_scene_ages *ages, uint64_t keep_seconds,
                       uint64_t version, uint64_t run_ns)
{
    uint64_t kept = keep_ns(keep_seconds);
    size_t n_old = 0;

    /* The last of those that are too old says that all up to it are. */
    while (n_old + 1 < ages->n && ages->marks[n_old + 1].run_ns < run_ns &&
           run_ns - ages->marks[n_old + 1].run_ns > kept) {
        n_old++;
    }
    if (ages->n - n_old == VXD_SCENE_AGE_MARKS) {
        n_old++; /* its versions count as those of the next one */
    }
    ages->n -= n_old;
    memmove(ages->marks, ages->marks + n_old, ages->n * sizeof ages->marks[0]);
    ages->marks[ages->n++] = (struct vxd_scene_age_mark){version, run_ns};
}

void vxd_scene_age_forget(struct vxd_scene_ages *ages, uint64_t version)
{
    while (ages->n > 0 && ages->marks[ages->n - 1].version >= version) {
        ages->n--;
    }
}

void vxd_scene_age_drop_later(struct vxd_scene_ages *ages, uint64_t run_ns)
{
    while (ages->n > 0 && ages->marks[ages->n - 1].run_ns > run_ns) {
        ages->n--;
    }
}

uint64_t vxd_scene_age_find(const struct vxd_scene_ages *ages, uint64_t version,
                            uint64_t otherwise)
{
    for (size_t i = 0; i < ages->n; i++) {
        if (ages->marks[i].version >= version) {
            return ages->marks[i].run_ns < otherwise ? ages->marks[i].run_ns : otherwise;
        }
    }
    return otherwise;
}

void vxd_scene_age_write(struct vxd_bytes_out *out, const char *scene,
                         const struct vxd_scene_ages *ages)
{
    size_t n = strlen(scene);

    vxd_bytes_put_number(out, n);
    vxd_bytes_put(out, scene, n);
    vxd_bytes_put_number(out, ages->n);
    for (size_t i = 0; i < ages->n; i++) {
        vxd_bytes_put_number(out, ages->marks[i].version);
        vxd_bytes_put_number(out, ages->marks[i].run_ns);
    }
}

bool vxd_scene_age_read(struct vxd_bytes_in *in, char scene[VXD_NAME_BYTES],
                        struct vxd_scene_ages *ages)
{
    uint64_t n = vxd_bytes_get_number(in);
    const uint8_t *text = n < VXD_NAME_BYTES ? vxd_bytes_get(in, (size_t)n) : NULL;

    scene[0] = '\0';
    ages->n = 0;
    if (text == NULL) {
        return false;
    }
    memcpy(scene, text, (size_t)n);
    scene[n] = '\0';
    n = vxd_bytes_get_number(in);
    for (uint64_t i = 0; i < n && i < VXD_SCENE_AGE_MARKS && !in->is_bad; i++) {
        ages->marks[i].version = vxd_bytes_get_number(in);
        ages->marks[i].run_ns = vxd_bytes_get_number(in);
    }
    ages->n = in->is_bad || n > VXD_SCENE_AGE_MARKS ? 0 : (size_t)n;
    return !in->is_bad && n <= VXD_SCENE_AGE_MARKS;
}
