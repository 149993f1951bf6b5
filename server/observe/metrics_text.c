// SPDX-License-Identifier: Apache-2.0
/* Writes the text exposition format, version 0.0.4. */
#include <inttypes.h>

#include "server/observe/metrics_internal.h"

void vxd_metrics_describe(struct vxd_text *text, const char *name, const char *type,
                          const char *help)
{
    vxd_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void vxd_metrics_write_uint(struct vxd_text *text, const char *name, const char *type,
                            const char *help, uint64_t value)
{
    vxd_metrics_describe(text, name, type, help);
    vxd_text_printf(text, "%s %" PRIu64 "\n", name, value);
}

void vxd_metrics_write_real(struct vxd_text *text, const char *name, const char *type,
                            const char *help, double value)
{
    vxd_metrics_describe(text, name, type, help);
    vxd_text_printf(text, "%s %.17g\n", name, value);
}

/* The label is "" or `op="voxelize"`. */
static void write_histogram(struct vxd_text *text, const char *name, const char *label,
                            const double *bounds, const struct vxd_histogram *histogram)
{
    const char *comma = label[0] != '\0' ? "," : "";
    uint64_t cumulative = 0;
    uint64_t n = atomic_load(&histogram->n);

    for (int i = 0; i < VXD_METRICS_BUCKETS; i++) {
        cumulative += atomic_load(&histogram->buckets[i]);
        vxd_text_printf(text, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, label,
                        comma, bounds[i], cumulative);
    }
    /* Counting goes on meanwhile; +Inf is never below the buckets. */
    n = n < cumulative ? cumulative : n;
    vxd_text_printf(text, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, label, comma,
                    n);
    vxd_text_printf(text, "%s_sum%s%s%s %.9f\n", name, label[0] != '\0' ? "{" : "", label,
                    label[0] != '\0' ? "}" : "",
                    (double)atomic_load(&histogram->sum_ns) / 1e9);
    vxd_text_printf(text, "%s_count%s%s%s %" PRIu64 "\n", name,
                    label[0] != '\0' ? "{" : "", label, label[0] != '\0' ? "}" : "", n);
}

/* Returns the names of the known methods, then the one for unknown methods; NULL after
 * the last. */
static const char *op_name(const struct vxd_metrics_names *names, size_t row,
                           size_t *index)
{
    if (row < names->n_methods) {
        *index = row;
        return names->methods[row];
    }
    *index = VXD_METRICS_MAX_METHODS - 1;
    return row == names->n_methods ? "unknown" : NULL;
}

static void write_requests(const struct vxd_metrics *metrics,
                           const struct vxd_metrics_names *names, struct vxd_text *text)
{
    const char *op;
    size_t index;

    vxd_metrics_describe(text, "voxeld_requests_total", "counter", "Requests answered.");
    for (size_t row = 0; (op = op_name(names, row, &index)) != NULL; row++) {
        for (int code = 0; code < VXD_METRICS_CODES; code++) {
            uint64_t n = atomic_load(&metrics->methods[index].requests[code]);

            if (n > 0 || (code == VXD_OK && index != VXD_METRICS_MAX_METHODS - 1)) {
                vxd_text_printf(
                    text, "voxeld_requests_total{op=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                    op, names->code_name((enum vxd_status)code), n);
            }
        }
    }
    vxd_metrics_describe(text, "voxeld_request_duration_seconds", "histogram",
                         "From arrival to reply.");
    for (size_t row = 0; (op = op_name(names, row, &index)) != NULL; row++) {
        char label[80];

        (void)snprintf(label, sizeof label, "op=\"%s\"", op);
        if (atomic_load(&metrics->methods[index].duration.n) > 0) {
            write_histogram(text, "voxeld_request_duration_seconds", label,
                            vxd_metrics_bounds, &metrics->methods[index].duration);
        }
    }
}

/* Names come from the tokens' file, whose letters need no escaping. */
static void write_tokens(const struct vxd_metrics *metrics, struct vxd_text *text)
{
    size_t n = atomic_load(&metrics->n_tokens);

    vxd_metrics_describe(text, "voxeld_token_outcomes_total", "counter",
                         "Requests answered, by the sender's token.");
    for (size_t i = 0; i <= n; i++) {
        const struct vxd_token_metrics *token =
            &metrics->tokens[i < n ? i : VXD_METRICS_TOKENS];

        for (int k = 0; k < VXD_OUTCOMES; k++) {
            vxd_text_printf(text,
                            "voxeld_token_outcomes_total{token=\"%s\",outcome=\"%s\"} "
                            "%" PRIu64 "\n",
                            token->name, vxd_outcome_names[k],
                            atomic_load(&token->requests[k]));
        }
    }
    vxd_metrics_describe(text, "voxeld_token_answer_seconds_total", "counter",
                         "From arrival to reply, by the sender's token.");
    for (size_t i = 0; i <= n; i++) {
        const struct vxd_token_metrics *token =
            &metrics->tokens[i < n ? i : VXD_METRICS_TOKENS];

        vxd_text_printf(text, "voxeld_token_answer_seconds_total{token=\"%s\"} %.9f\n",
                        token->name, (double)atomic_load(&token->sum_ns) / 1e9);
    }
}

void vxd_metrics_write_counters(const struct vxd_metrics *metrics,
                                const struct vxd_metrics_names *names,
                                struct vxd_text *text)
{
    write_requests(metrics, names, text);
    write_tokens(metrics, text);
    vxd_metrics_describe(text, "voxeld_queue_wait_seconds", "histogram",
                         "From arrival until the engine took the request.");
    write_histogram(text, "voxeld_queue_wait_seconds", "", vxd_metrics_bounds,
                    &metrics->queue_wait);
    vxd_metrics_describe(
        text, "voxeld_scene_publish_seconds", "histogram",
        "From a version's end, or its place on the disk, until everybody sees it.");
    write_histogram(text, "voxeld_scene_publish_seconds", "", vxd_metrics_small_bounds,
                    &metrics->publish);
    vxd_metrics_write_uint(text, "voxeld_superseded_total", "counter",
                           "Requests superseded by newer ones of their stream.",
                           atomic_load(&metrics->superseded));
    vxd_metrics_describe(text, "voxeld_rejected_total", "counter",
                         "Requests refused on arrival.");
    for (int i = 0; i < VXD_METRICS_REASONS; i++) {
        vxd_text_printf(text, "voxeld_rejected_total{reason=\"%s\"} %" PRIu64 "\n",
                        vxd_metrics_reasons[i], atomic_load(&metrics->rejected[i]));
    }
    vxd_metrics_write_uint(text, "voxeld_points_total", "counter", "Points voxelized.",
                           atomic_load(&metrics->points));
}

void vxd_metrics_write_memory(struct vxd_text *text, const char *name, const char *help,
                              size_t used, size_t peak, size_t budget, size_t kept)
{
    vxd_metrics_describe(text, name, "gauge", help);
    vxd_text_printf(text, "%s{use=\"used\"} %zu\n%s{use=\"peak\"} %zu\n", name, used,
                    name, peak);
    vxd_text_printf(text, "%s{use=\"budget\"} %zu\n%s{use=\"kept\"} %zu\n", name, budget,
                    name, kept);
}
