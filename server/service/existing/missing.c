// SPDX-License-Identifier: Apache-2.0
#include "server/service/existing/existing.h"

#include <stdio.h>
#include <string.h>

#include "server/instance/instance.h"
#include "server/registry/named/named.h"
#include "server/registry/networks/networks.h"
#include "server/registry/odometries/odometries.h"
#include "server/registry/posegraphs/posegraphs.h"
#include "server/registry/scenes/scenes.h"

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

/* What a walk over the names of a noun offers. */
struct offering {
    struct vxd_missing *missing;
    const struct vxd_request *request;
    enum vxd_noun noun;
};

static void offer_named(const struct vxd_named *named, void *user)
{
    const struct offering *offering = user;

    offer_allowed(offering->missing, offering->request, offering->noun,
                  named->terms.name);
}

static void offer_all(struct vxd_missing *missing, const struct vxd_request *request,
                      struct vxd_names *names, enum vxd_noun noun)
{
    struct offering offering = {missing, request, noun};

    vxd_names_look_at_all(names, offer_named, &offering);
}

static enum vxd_status missing_named(struct vxd_request *request, struct vxd_names *names,
                                     enum vxd_noun noun, const char *many,
                                     const char *field, const char *name,
                                     struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};

    offer_all(&missing, request, names, noun);
    return fail(&missing, field, many, err);
}

enum vxd_status vxd_missing_map(struct vxd_request *request, const char *field,
                                const char *name, struct vxd_err *err)
{
    return missing_named(request, request->server->maps, VXD_NOUN_MAP, "maps", field,
                         name, err);
}

enum vxd_status vxd_missing_volume(struct vxd_request *request, const char *field,
                                   const char *name, struct vxd_err *err)
{
    return missing_named(request, request->server->volumes, VXD_NOUN_VOLUME, "volumes",
                         field, name, err);
}

enum vxd_status vxd_missing_posegraph(struct vxd_request *request, const char *field,
                                      const char *name, struct vxd_err *err)
{
    return missing_named(request, request->server->posegraphs, VXD_NOUN_POSEGRAPH,
                         "pose graphs", field, name, err);
}

enum vxd_status vxd_missing_odometry(struct vxd_request *request, const char *field,
                                     const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    char text[160];

    offer_all(&missing, request, vxd_odometries_named(request->server->odometries),
              VXD_NOUN_ODOMETRY);
    return vxd_fail(err, VXD_NOT_FOUND, field,
                    "there is no odometry \"%s\"; a restart of the server forgets them%s",
                    name, vxd_missing_text(&missing, "odometries", text, sizeof text));
}

/* Offers what networks_dir has; true where the name itself is there. */
static bool offer_files(struct vxd_missing *missing, const struct vxd_request *request,
                        const char *name, bool *is_readable)
{
    const char *directory = request->server->config.networks_dir;
    struct vxd_err ignored;
    char **names = NULL;
    size_t n = 0;
    bool found = false;

    *is_readable = directory[0] != '\0' &&
                   vxd_model_names(directory, &names, &n, &ignored) == VXD_OK;
    if (*is_readable) {
        for (size_t i = 0; i < n; i++) {
            found = found || strcmp(names[i], name) == 0;
            offer_allowed(missing, request, VXD_NOUN_NETWORK, names[i]);
        }
        vxd_model_names_free(names, n);
    }
    return found;
}

enum vxd_status vxd_missing_network_file(struct vxd_request *request, const char *field,
                                         const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    char text[160];
    bool is_readable;

    if (offer_files(&missing, request, name, &is_readable) || !is_readable) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_NOT_FOUND, field,
                    "networks_dir has no network \"%s\" (%s.json)%s", name, name,
                    vxd_missing_text(&missing, "networks there", text, sizeof text));
}

enum vxd_status vxd_missing_network(struct vxd_request *request, const char *field,
                                    const char *name, struct vxd_err *err)
{
    struct vxd_missing missing = {.closest.word = name};
    struct vxd_missing files = {.closest.word = name};
    char text[160];
    bool is_readable;

    offer_all(&missing, request, request->server->networks, VXD_NOUN_NETWORK);
    if (offer_files(&files, request, name, &is_readable)) {
        return vxd_fail(err, VXD_NOT_FOUND, field,
                        "no network \"%s\" is loaded, but networks_dir has one: load it "
                        "(voxelctl net load %s)",
                        name, name);
    }
    if (is_readable && (missing.n == 0 || (missing.closest.found[0] == '\0' &&
                                           files.closest.found[0] != '\0'))) {
        return vxd_fail(err, VXD_NOT_FOUND, field,
                        "no network \"%s\" is loaded, nor in networks_dir%s", name,
                        vxd_missing_text(&files, "networks there", text, sizeof text));
    }
    return vxd_fail(err, VXD_NOT_FOUND, field, "no network \"%s\" is loaded%s", name,
                    vxd_missing_text(&missing, "loaded networks", text, sizeof text));
}
