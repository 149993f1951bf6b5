// SPDX-License-Identifier: Apache-2.0
/* voxelctl slac progress, cancel, volume: fragments aligned without rigidity. */
#include "client/voxelctl/slac/slac_commands.h"

void ctl_slac_print_progress(const struct ctl_slac_args *args,
                             const struct voxeld_slac_progress_result *result)
{
    static const char *const states[] = {"running", "done", "failed", "cancelled"};
    char pairs[32];

    (void)printf(
        "%s: %s, %u of %u steps, %.1f s: %s pairs, loss %g m^2%s%s\n", args->words[0],
        (size_t)result->state < 4 ? states[result->state] : "unknown", result->iteration,
        result->iterations, result->elapsed_s, ctl_thousands(result->n_pairs, pairs),
        result->data + result->regularizer, result->error[0] != '\0' ? ": " : "",
        result->error);
}

int ctl_slac_cancel(struct voxeld_client *client, const struct ctl_globals *globals,
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

void ctl_slac_print_deformed(const struct ctl_slac_args *args,
                             const struct voxeld_slac_deformed *result)
{
    char text[32];

    (void)printf("%s: %s blocks, %.1f ms in the engine\n", args->words[2],
                 ctl_thousands(result->n_blocks, text), result->engine_ms);
}
