// SPDX-License-Identifier: Apache-2.0
#include "server/service/existing/existing.h"

#include <stdio.h>
#include <string.h>

#include "server/instance/instance.h"
#include "server/registry/maps/maps.h"
#include "server/registry/networks/networks.h"
#include "server/registry/scenes/scenes.h"
#include "server/registry/volumes/volumes.h"

void vxd_missing_offer(struct vxd_missing *missing, const char *name)
{
    size_t n_used = strlen(missing->list);
    size_t n_wanted = strlen(name) + (n_used > 0 ? 2 : 0);

    missing->n++;
    vxd_closest_offer(&missing->closest, name);
    if (missing->n_listed + 1 == missing->n && n_used + n_wanted < sizeof missing->list) {
        (void)snprintf(missing->list + n_used, sizeof missing->list - n_used, "%s%s",
                       n_used > 0 ? ", " : "", name);
        missing->n_listed++;
    }
}

const char *vxd_missing_text(const struct vxd_missing *missing, const char *what,
                             char *text, size_t n_bytes)
{
    if (missing->closest.found[0] != '\0') {
        return vxd_closest_text(&missing->closest, text, n_bytes);
    }
    if (missing->n == 0) {
        (void)snprintf(text, n_bytes, "; there are no %s", what);
    } else if (missing->n_listed == missing->n) {
        (void)snprintf(text, n_bytes, "; %s: %s", what, missing->list);
    } else {
        (void)snprintf(text, n_bytes, "; %s: %s%sand %zu more", what, missing->list,
                       missing->n_listed > 0 ? " " : "", missing->n - missing->n_listed);
    }
    return text;
}

static void offer_allowed(struct vxd_missing *missing, const struct vxd_request *request,
                          enum vxd_noun noun, const char *name)
{
    if (request->principal.rules == NULL ||
        vxd_rules_allow_name(request->principal.rules, noun, name)) {
        vxd_missing_offer(missing, name);
    }
}

static enum vxd_status fail(const struct vxd_missing *missing, const char *field,
                            const char *what, struct vxd_err *err)
{
    char text[160];

    return vxd_fail(err, VXD_NOT_FOUND, field, "there is no %.*s \"%s\"%s",
                    (int)strlen(what) - 1, what, missing->closest.word,
                    vxd_missing_text(missing, what, text, sizeof text));
}

enum vxd_status vxd_missing_scene(struct vxd_request *request, const char *field,
                                  const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    char next[VXD_NAME_BYTES] = "";

    while (vxd_scenes_next_name(request->server->scenes, next)) {
        offer_allowed(&missing, request, VXD_NOUN_SCENE, next);
    }
    return fail(&missing, field, "scenes", err);
}

enum vxd_status vxd_missing_map(struct vxd_request *request, const char *field,
                                const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    struct vxd_names *maps = request->server->maps;

    for (const struct vxd_named *map = vxd_names_next(maps, NULL); map != NULL;
         map = vxd_names_next(maps, map)) {
        offer_allowed(&missing, request, VXD_NOUN_MAP, map->terms.name);
    }
    return fail(&missing, field, "maps", err);
}

enum vxd_status vxd_missing_volume(struct vxd_request *request, const char *field,
                                   const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    struct vxd_names *volumes = request->server->volumes;

    for (const struct vxd_named *volume = vxd_names_next(volumes, NULL); volume != NULL;
         volume = vxd_names_next(volumes, volume)) {
        offer_allowed(&missing, request, VXD_NOUN_VOLUME, volume->terms.name);
    }
    return fail(&missing, field, "volumes", err);
}

/* Looks for the name among the files that could be loaded. */
static bool can_be_loaded(const struct vxd_request *request, const char *name)
{
    const char *directory = request->server->config.networks_dir;
    struct vxd_err ignored;
    char **names = NULL;
    size_t n = 0;
    bool found = false;

    if (directory[0] != '\0' &&
        vxd_model_names(directory, &names, &n, &ignored) == VXD_OK) {
        for (size_t i = 0; i < n; i++) {
            found = found || strcmp(names[i], name) == 0;
        }
        vxd_model_names_free(names, n);
    }
    return found;
}

enum vxd_status vxd_missing_network(struct vxd_request *request, const char *field,
                                    const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    struct vxd_network *held[VXD_NETWORKS_MAX];
    size_t n = vxd_networks_list(request->server->networks, held);
    char text[160];

    for (size_t i = 0; i < n; i++) {
        offer_allowed(&missing, request, VXD_NOUN_NETWORK,
                      vxd_model_name(held[i]->model));
        vxd_network_drop(held[i]);
    }
    if (can_be_loaded(request, name)) {
        return vxd_fail(err, VXD_NOT_FOUND, field,
                        "no network \"%s\" is loaded, but networks_dir has one: load it "
                        "(voxelctl net load %s)",
                        name, name);
    }
    return vxd_fail(err, VXD_NOT_FOUND, field, "no network \"%s\" is loaded%s", name,
                    vxd_missing_text(&missing, "loaded networks", text, sizeof text));
}
