// SPDX-License-Identifier: Apache-2.0
#include "server/registry/odometries/odometries.h"

#include <stdlib.h>

#include "server/observe/log/log.h"

/* How long one beside a scene or a volume is kept unused. */
#define BESIDE_TTL_NS ((int64_t)3600 * 1000000000)

struct vxd_odometries {
    struct vxd_names *tables[VXD_ODOMETRY_N_OWNERS];
};

static size_t count_bytes(const struct vxd_named *named)
{
    struct vxd_odometry_info info;

    vxd_odometry_get_info(((const struct vxd_named_odometry *)named)->odometry, &info);
    return info.n_bytes;
}

static void clear(struct vxd_named *named, struct vxd_queue *queue)
{
    vxd_odometry_destroy(queue, ((struct vxd_named_odometry *)named)->odometry);
}

static void log_event(enum vxd_registry_event event, const char *name, const char *text)
{
    if (event == VXD_REGISTRY_EXPIRED) {
        vxd_log(VXD_LOG_INFO, "odometry dropped: nobody used it for its ttl_s",
                "odometry", name, "owner", text);
    }
}

/* Those beside scenes and volumes do not count as odometries that a token has, but for their
 * bytes. */
static const struct vxd_noun_calls calls[2] = {
    {.one = "odometry",
     .many = "odometries",
     .max = VXD_ODOMETRIES_MAX,
     .n_bytes = sizeof(struct vxd_named_odometry),
     .uses_device = true,
     .log = log_event,
     .count_bytes = count_bytes,
     .clear = clear},
    {.one = "odometry",
     .many = "odometries",
     .max = VXD_ODOMETRIES_MAX,
     .n_bytes = sizeof(struct vxd_named_odometry),
     .uses_device = true,
     .has_quota = true,
     .quota = VXD_NOUN_ODOMETRY,
     .log = log_event,
     .count_bytes = count_bytes,
     .clear = clear},
};

enum vxd_status vxd_odometries_create(struct vxd_server *server,
                                      struct vxd_odometries **out, struct vxd_err *err)
{
    struct vxd_odometries *odometries = calloc(1, sizeof *odometries);
    enum vxd_status status = VXD_OK;

    if (odometries == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for odometries");
    }
    for (int i = 0; i < VXD_ODOMETRY_N_OWNERS && status == VXD_OK; i++) {
        const struct vxd_names_options options = {
            .calls = &calls[i == VXD_ODOMETRY_NAMED ? 1 : 0]};

        status = vxd_names_create(server, &options, &odometries->tables[i], err);
    }
    if (status != VXD_OK) {
        vxd_odometries_destroy(odometries);
        return status;
    }
    *out = odometries;
    return VXD_OK;
}

void vxd_odometries_destroy(struct vxd_odometries *odometries)
{
    if (odometries == NULL) {
        return;
    }
    for (int i = 0; i < VXD_ODOMETRY_N_OWNERS; i++) {
        vxd_names_destroy(odometries->tables[i]);
    }
    free(odometries);
}

struct vxd_names *vxd_odometries_named(const struct vxd_odometries *odometries)
{
    return odometries->tables[VXD_ODOMETRY_NAMED];
}

struct vxd_named_odometry *vxd_odometries_find(const struct vxd_odometries *odometries,
                                               const char *name)
{
    return (struct vxd_named_odometry *)vxd_names_peek(vxd_odometries_named(odometries),
                                                       name);
}

enum vxd_status vxd_odometries_add(struct vxd_odometries *odometries,
                                   struct vxd_queue *queue,
                                   const struct vxd_odometry_terms *terms,
                                   struct vxd_named_odometry **out, struct vxd_err *err)
{
    struct vxd_named_odometry *odometry;
    struct vxd_named_terms kept = {.ttl_ns = terms->ttl_ns};
    struct vxd_named *named = NULL;
    struct vxd_names_usage usage;
    enum vxd_status status;

    vxd_odometries_get_usage(odometries, &usage);
    if (usage.n >= VXD_ODOMETRIES_MAX) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "there are %d odometries already, those beside scenes and "
                        "volumes included",
                        VXD_ODOMETRIES_MAX);
    }
    (void)snprintf(kept.name, sizeof kept.name, "%s", terms->name);
    (void)snprintf(kept.owner, sizeof kept.owner, "%s", terms->owner);
    VXD_TRY(vxd_named_begin(odometries->tables[terms->kind], &kept, &named, err));
    odometry = (struct vxd_named_odometry *)named;
    status = vxd_odometry_create(queue, &terms->options, terms->initial,
                                 &odometry->odometry, err);
    if (status != VXD_OK) {
        free(odometry);
        return status;
    }
    odometry->of_generation = terms->of_generation;
    vxd_named_enlist(named);
    vxd_named_publish(named);
    vxd_named_drop(named, queue); /* the table holds it */
    *out = odometry;
out:
    return status;
}

enum vxd_status vxd_odometries_beside(struct vxd_odometries *odometries,
                                      struct vxd_queue *queue,
                                      enum vxd_odometry_owner kind, const char *name,
                                      uint64_t generation, const char *owner,
                                      struct vxd_named_odometry **out,
                                      struct vxd_err *err)
{
    const struct vxd_odometry_terms terms = {
        .kind = kind,
        .of_generation = generation,
        .name = name,
        .owner = owner,
        .ttl_ns = BESIDE_TTL_NS,
        .options = {.max_bytes = VXD_ODOMETRY_BYTES}};
    struct vxd_named *named = vxd_names_peek(odometries->tables[kind], name);
    struct vxd_named_odometry *odometry = (struct vxd_named_odometry *)named;

    if (odometry != NULL && odometry->of_generation != generation) {
        vxd_named_remove(named, queue);
        odometry = NULL;
    }
    if (odometry != NULL) {
        *out = odometry;
        return VXD_OK;
    }
    return vxd_odometries_add(odometries, queue, &terms, out, err);
}

void vxd_odometries_drop_beside(struct vxd_odometries *odometries,
                                enum vxd_odometry_owner kind, const char *name)
{
    struct vxd_names *table = odometries != NULL ? odometries->tables[kind] : NULL;
    struct vxd_named *named = table != NULL ? vxd_names_peek(table, name) : NULL;

    if (named != NULL) {
        vxd_named_remove(named, vxd_names_queue(table));
        (void)vxd_queue_wait(vxd_names_queue(table),
                             NULL); /* which gives its memory back */
    }
}

void vxd_odometries_reap(struct vxd_odometries *odometries, struct vxd_queue *queue,
                         int64_t now_ns)
{
    for (int i = 0; i < VXD_ODOMETRY_N_OWNERS; i++) {
        vxd_names_reap(odometries->tables[i], queue, now_ns);
    }
}

int64_t vxd_odometries_next_reap_ns(const struct vxd_odometries *odometries)
{
    int64_t least_ns = INT64_MAX;

    for (int i = 0; i < VXD_ODOMETRY_N_OWNERS; i++) {
        int64_t next_ns = vxd_names_next_reap_ns(odometries->tables[i]);

        least_ns = next_ns < least_ns ? next_ns : least_ns;
    }
    return least_ns;
}

void vxd_odometries_get_usage(const struct vxd_odometries *odometries,
                              struct vxd_names_usage *out)
{
    struct vxd_names_usage usage;

    *out = (struct vxd_names_usage){0};
    for (int i = 0; i < VXD_ODOMETRY_N_OWNERS; i++) {
        vxd_names_get_usage(odometries->tables[i], &usage);
        out->n += usage.n;
        out->n_bytes += usage.n_bytes;
    }
}
