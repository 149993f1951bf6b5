// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene integrate: a scene of a recorded drive. */
#include <inttypes.h>
#include <stdlib.h>

#include "client/voxelctl/scene/scene_commands.h"

struct totals {
    size_t n_files;
    struct voxeld_scene_change change; /* its counts summed */
    uint64_t n_points;
    uint64_t n_used;
    uint64_t n_non_finite;
    uint64_t n_outside;
    uint64_t n_beyond;
    uint64_t n_dropped;
    uint64_t n_near;
    uint64_t n_own;
    uint64_t n_relabelled;
    size_t n_lost; /* files */
    double network_ms;
    double decode_ms;
    double carve_ms;
    double edit_ms;
    double engine_ms;
};

static void add(struct totals *t, const struct voxeld_scene_integrated *done)
{
    t->n_files++;
    t->change.version = done->change.version;
    t->change.n_added += done->change.n_added;
    t->change.n_removed += done->change.n_removed;
    t->change.n_changed += done->change.n_changed;
    t->change.n_freed += done->change.n_freed;
    t->change.n_new_nodes += done->change.n_new_nodes;
    t->n_points += done->n_points;
    t->n_used += done->n_used;
    t->n_non_finite += done->n_non_finite;
    t->n_outside += done->n_outside;
    t->n_beyond += done->n_beyond;
    t->n_dropped += done->n_dropped;
    t->n_near += done->n_near;
    t->n_own += done->n_own;
    t->n_relabelled += done->n_relabelled;
    t->network_ms += done->network.voxelize_ms + done->network.sets_ms +
                     done->network.layers_ms + done->network.outputs_ms;
    t->decode_ms += done->decode_ms;
    t->carve_ms += done->carve_ms;
    t->edit_ms += done->edit_ms;
    t->engine_ms += done->engine_ms;
}

struct integrate {
    struct voxeld_client *client;
    struct voxeld_scene_integrate_request request;
    struct totals totals;
};

static enum voxeld_status integrate_cloud(void *user, const struct voxeld_call *call,
                                          const struct voxeld_cloud *cloud,
                                          struct voxeld_error *error)
{
    struct integrate *integrate = user;
    struct voxeld_scene_integrated done;
    enum voxeld_status status;

    integrate->request.call = *call;
    integrate->request.cloud = cloud;
    status = voxeld_scene_integrate(integrate->client, &integrate->request, &done, error);
    if (status == VOXELD_OK) {
        add(&integrate->totals, &done);
        integrate->totals.n_lost += done.is_lost ? 1 : 0;
    }
    return status;
}

static void print_json(const char *scene, const struct totals *t)
{
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "scene", scene);
    ctl_json_member_count(stdout, false, "version", t->change.version);
    ctl_json_member_count(stdout, false, "n_added", t->change.n_added);
    ctl_json_member_count(stdout, false, "n_removed", t->change.n_removed);
    ctl_json_member_count(stdout, false, "n_changed", t->change.n_changed);
    ctl_json_member_count(stdout, false, "n_freed", t->change.n_freed);
    ctl_json_member_count(stdout, false, "n_new_nodes", t->change.n_new_nodes);
    ctl_json_member_count(stdout, false, "n_files", t->n_files);
    ctl_json_member_count(stdout, false, "n_points", t->n_points);
    ctl_json_member_count(stdout, false, "n_used", t->n_used);
    ctl_json_member_count(stdout, false, "n_non_finite", t->n_non_finite);
    ctl_json_member_count(stdout, false, "n_outside", t->n_outside);
    ctl_json_member_count(stdout, false, "n_beyond", t->n_beyond);
    ctl_json_member_count(stdout, false, "n_dropped", t->n_dropped);
    ctl_json_member_count(stdout, false, "n_near", t->n_near);
    ctl_json_member_count(stdout, false, "n_own", t->n_own);
    ctl_json_member_count(stdout, false, "n_relabelled", t->n_relabelled);
    ctl_json_member_count(stdout, false, "n_lost", t->n_lost);
    ctl_json_member_number(stdout, false, "network_ms", t->network_ms);
    ctl_json_member_number(stdout, false, "decode_ms", t->decode_ms);
    ctl_json_member_number(stdout, false, "carve_ms", t->carve_ms);
    ctl_json_member_number(stdout, false, "edit_ms", t->edit_ms);
    ctl_json_member_number(stdout, false, "engine_ms", t->engine_ms);
    (void)fputs("}\n", stdout);
}

static int print_totals(const struct ctl_globals *globals, const char *scene,
                        const struct totals *t)
{
    char text[5][32];
    char network[64] = "";
    char relabelled[64] = "";
    char number[32];

    if (t->n_relabelled > 0) {
        (void)snprintf(relabelled, sizeof relabelled, ", %s of another material",
                       ctl_thousands(t->n_relabelled, number));
    }
    if (t->network_ms > 0) {
        (void)snprintf(network, sizeof network, "the network %.1f, ", t->network_ms);
    }
    if (globals->json) {
        print_json(scene, t);
    } else {
        (void)printf(
            "%s: version %" PRIu64 ": %s of %s points of %zu files; voxels: %s added, %s "
            "removed, %s freed%s; %.1f ms in the engine (%sdecoding %.1f, carving %.1f, "
            "editing %.1f)\n",
            scene, t->change.version, ctl_thousands(t->n_used, text[0]),
            ctl_thousands(t->n_points, text[1]), t->n_files,
            ctl_thousands(t->change.n_added, text[2]),
            ctl_thousands(t->change.n_removed, text[3]),
            ctl_thousands(t->change.n_freed, text[4]), relabelled, t->engine_ms, network,
            t->decode_ms, t->carve_ms, t->edit_ms);
        if (t->n_near + t->n_own > 0) {
            (void)printf("%s points of the robot itself were left out\n",
                         ctl_thousands(t->n_near + t->n_own, number));
        }
        if (t->n_lost > 0) {
            (void)printf(
                "%zu files were lost: their poses were not found, and nothing of "
                "them was added\n",
                t->n_lost);
        }
    }
    return ctl_flush();
}

int ctl_scene_check_integrate(const struct ctl_scene_args *args)
{
    const ctl_bits of_rule =
        CTL_SCENE_BIT(CTL_SCENE_RULE) | CTL_SCENE_BIT(CTL_SCENE_MATERIAL) |
        CTL_SCENE_BIT(CTL_SCENE_FIELD) | CTL_SCENE_BIT(CTL_SCENE_RANGE);
    const ctl_bits of_carving = CTL_SCENE_BIT(CTL_SCENE_MAX_RANGE) |
                                CTL_SCENE_BIT(CTL_SCENE_ERASE) |
                                CTL_SCENE_BIT(CTL_SCENE_DISCRETIZE);
    const ctl_bits of_creating =
        ctl_scene_create_manual.options & ~CTL_SCENE_BIT(CTL_SCENE_SIZE);

    if (!ctl_scene_has(args, CTL_SCENE_SIZE) && (args->given & of_creating) != 0) {
        return ctl_usage("scene integrate", "the options of a scene go with --size");
    }
    if (ctl_scene_has(args, CTL_SCENE_NO_CARVE) && (args->given & of_carving) != 0) {
        return ctl_usage("scene integrate",
                         "--max-range, --erase and --discretize are of carving");
    }
    if (args->network != NULL && (args->given & of_rule) != 0) {
        return ctl_usage("scene integrate",
                         "with --network the labels say what materials points take");
    }
    return CTL_OK;
}

/* With --size a missing scene is created. */
static int make_scene(struct voxeld_client *client, const struct ctl_scene_args *args,
                      bool *is_new)
{
    struct voxeld_scene_create_request create = {0};
    struct voxeld_scenes *made = NULL;
    struct voxeld_error error;

    *is_new = false;
    if (!ctl_scene_has(args, CTL_SCENE_SIZE)) {
        return CTL_OK;
    }
    ctl_scene_create_request(args, &create);
    create.scene = args->scene;
    if (voxeld_scene_create(client, &create, &made, &error) != VOXELD_OK) {
        return ctl_failed(args->scene, &error);
    }
    *is_new = !made->existed;
    voxeld_scenes_free(made);
    return CTL_OK;
}

/* Nothing went into a scene that was made for it: it goes, too. */
static void drop_scene(struct voxeld_client *client, const char *name)
{
    struct voxeld_error error;

    if (voxeld_scene_drop(client, NULL, name, true, NULL, &error) != VOXELD_OK) {
        (void)ctl_failed(name, &error);
    }
}

static int integrate_all(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct ctl_scene_args *args,
                         const struct ctl_scene_labels *labels)
{
    struct integrate integrate = {.client = client};
    struct voxeld_scene_integrate_request *request = &integrate.request;
    struct ctl_drive drive = {
        .paths = args->words,
        .n = args->n_words,
        .format = args->format,
        .retry_s = ctl_scene_has(args, CTL_SCENE_RETRY) ? args->retry : CTL_DRIVE_RETRY_S,
        .if_missing = "--size METRES makes a new one",
        .send = integrate_cloud,
        .user = &integrate,
    };
    const struct voxeld_body body = {.min_range_m = args->min_range,
                                     .boxes = args->body.boxes,
                                     .n_boxes = args->body.n};
    struct voxeld_pose *poses = NULL;
    bool is_new;
    int result;

    ctl_scene_integrate_request(args, request);
    request->scene = args->scene;
    request->carve = !ctl_scene_has(args, CTL_SCENE_NO_CARVE);
    request->max_range_m = args->max_range;
    request->erase = ctl_scene_has(args, CTL_SCENE_ERASE);
    request->discretize = ctl_scene_has(args, CTL_SCENE_DISCRETIZE);
    request->low = args->range[0];
    request->high = args->range[1];
    request->labels = ctl_scene_labels_get(labels, &request->n_labels);
    request->estimate = ctl_scene_has(args, CTL_SCENE_ESTIMATE);
    if (args->poses != NULL &&
        ctl_read_poses(args->poses, args->n_words, &poses) != CTL_OK) {
        return CTL_FAILED;
    }
    if (make_scene(client, args, &is_new) != CTL_OK) {
        free(poses);
        return CTL_FAILED;
    }
    drive.poses = poses;
    drive.body = body.min_range_m > 0 || body.n_boxes > 0 ? &body : NULL;
    result = ctl_drive_send(&drive);
    free(poses);
    if (integrate.totals.n_files == 0 && is_new) {
        drop_scene(client, args->scene);
    }
    if (integrate.totals.n_files > 0) {
        int printed = print_totals(globals, args->scene, &integrate.totals);

        result = printed != CTL_OK ? printed : result;
    }
    return result;
}

int ctl_scene_integrate(struct voxeld_client *client, const struct ctl_globals *globals,
                        const struct ctl_scene_args *args)
{
    struct ctl_scene_labels *labels = NULL;
    int result =
        args->labels != NULL ? ctl_scene_labels_read(args->labels, &labels) : CTL_OK;

    if (result == CTL_OK) {
        result = integrate_all(client, globals, args, labels);
    }
    ctl_scene_labels_free(labels);
    return result;
}
