// SPDX-License-Identifier: Apache-2.0
/* voxelctl slac: fragments aligned without rigidity. */
#include <string.h>

#include "client/voxelctl/slac/slac_commands.h"
#include "client/voxelctl/slac/voxelctl_slac.h"

static int progress(struct voxeld_client *client, const struct ctl_globals *globals,
                    const struct ctl_slac_args *args)
{
    static const char *const states[] = {"running", "done", "failed", "cancelled"};
    struct voxeld_slac_progress_request request = {.grid = args->words[0]};
    struct voxeld_slac_progress_result *result;
    struct voxeld_error error;

    if (voxeld_slac_progress(client, &request, &result, &error) != VOXELD_OK) {
        return ctl_failed(request.grid, &error);
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "state",
                               (size_t)result->state < 4 ? states[result->state]
                                                         : "unknown");
        ctl_json_member_count(stdout, false, "iteration", result->iteration);
        ctl_json_member_count(stdout, false, "iterations", result->iterations);
        ctl_json_member_number(stdout, false, "data", result->data);
        ctl_json_member_number(stdout, false, "regularizer", result->regularizer);
        ctl_json_member_count(stdout, false, "n_pairs", result->n_pairs);
        ctl_json_member_count(stdout, false, "n_edges", result->n_edges);
        ctl_json_member_count(stdout, false, "n_control_points",
                              result->n_control_points);
        ctl_json_member_number(stdout, false, "elapsed_s", result->elapsed_s);
        ctl_json_member_string(stdout, false, "error", result->error);
        (void)fputs("}\n", stdout);
    } else {
        char pairs[32];

        (void)printf(
            "%s: %s, %u of %u steps, %.1f s: %s pairs, loss %g m^2%s%s\n", request.grid,
            (size_t)result->state < 4 ? states[result->state] : "unknown",
            result->iteration, result->iterations, result->elapsed_s,
            ctl_thousands(result->n_pairs, pairs), result->data + result->regularizer,
            result->error[0] != '\0' ? ": " : "", result->error);
    }
    voxeld_slac_progress_result_free(result);
    return ctl_flush();
}

static int cancel(struct voxeld_client *client, const struct ctl_globals *globals,
                  const struct ctl_slac_args *args)
{
    struct voxeld_error error;
    bool was_running = false;

    if (voxeld_slac_cancel(client, NULL, args->words[0], &was_running, &error) !=
        VOXELD_OK) {
        return ctl_failed(args->words[0], &error);
    }
    if (globals->json) {
        (void)printf("{\"was_running\": %s}\n", was_running ? "true" : "false");
    } else {
        (void)printf("%s: %s\n", args->words[0],
                     was_running ? "cancelled" : "it had ended");
    }
    return ctl_flush();
}

static int deform_volume(struct voxeld_client *client, const struct ctl_globals *globals,
                         const struct ctl_slac_args *args)
{
    struct voxeld_slac_deform_volume_request request = {0};
    struct voxeld_slac_deformed *result;
    struct voxeld_error error;
    char text[32];

    ctl_slac_volume_request(args, &request);
    request.volume = args->words[1];
    request.to = args->words[2];
    if (voxeld_slac_deform_volume(client, &request, &result, &error) != VOXELD_OK) {
        return ctl_failed(request.volume, &error);
    }
    if (globals->json) {
        ctl_slac_volume_json(result);
    } else {
        (void)printf("%s: %s blocks, %.1f ms in the engine\n", request.to,
                     ctl_thousands(result->n_blocks, text), result->engine_ms);
    }
    voxeld_slac_deformed_free(result);
    return ctl_flush();
}

static const struct sub {
    const struct ctl_manual *manual;
    ctl_slac_run_fn *run;
} subs[] = {
    {&ctl_slac_optimize_manual, ctl_slac_optimize},
    {&ctl_slac_progress_manual, progress},
    {&ctl_slac_cancel_manual, cancel},
    {&ctl_slac_apply_manual, ctl_slac_apply},
    {&ctl_slac_volume_manual, deform_volume},
};

enum {
    N_SUBS = sizeof subs / sizeof subs[0]
};

static int no_subcommand(const char *word)
{
    const char *names[N_SUBS];

    for (size_t i = 0; i < N_SUBS; i++) {
        names[i] = strchr(subs[i].manual->command.name, ' ') + 1;
    }
    return ctl_no_subcommand("slac", word, names, N_SUBS);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_slac_args args = {0};
    const struct sub *sub = NULL;
    struct voxeld_client *client;
    int result = CTL_OK;

    if (argc < 2) {
        return ctl_usage("slac", "no subcommand");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        (void)fputs(ctl_slac_help, stdout);
        return ctl_flush();
    }
    for (size_t i = 0; i < N_SUBS && sub == NULL; i++) {
        if (strcmp(strchr(subs[i].manual->command.name, ' ') + 1, argv[1]) == 0) {
            sub = &subs[i];
        }
    }
    if (sub == NULL) {
        return no_subcommand(argv[1]);
    }
    if (!ctl_slac_parse(globals, sub->manual, argc - 1, argv + 1, &args, &result)) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    result = sub->run(client, globals, &args);
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_slac = {
    .name = "slac",
    .summary = ctl_slac_summary,
    .help = ctl_slac_help,
    .run = run,
};
