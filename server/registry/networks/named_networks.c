// SPDX-License-Identifier: Apache-2.0
/* Whatever takes long (files, building, giving memory back) happens outside of the table's mutex. */
#include "server/registry/networks/named_networks.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/registry/networks/networks_kept.h"
#include "server/registry/networks/networks_warm_up.h"
#include "server/instance/instance.h"

/* What networks have beside their table. */
struct own {
    const struct vxd_server *server;
    uint64_t budget_bytes; /* of the engine */
    pthread_mutex_t runs;  /* guards what is noted of runs */
    pthread_mutex_t
        destroy; /* one thread at a time uses the table's queue, to free networks */
    pthread_mutex_t keep;                /* held while the list in data_dir is written */
    const struct vxd_data_dir *data_dir; /* NULL: none is kept */
};

static struct own *own_of(const struct vxd_network *network)
{
    return vxd_names_own(network->named.names);
}

static size_t count_bytes(const struct vxd_named *named)
{
    return named->n_bytes; /* taken before the weights are used */
}

static void clear(struct vxd_named *named, struct vxd_queue *unused)
{
    struct vxd_network *network = (struct vxd_network *)named;
    struct own *own = own_of(network);
    struct vxd_queue *queue = vxd_names_queue(named->names);

    (void)unused; /* whoever drops a network last may have none */
    if (network->net != NULL) {
        (void)pthread_mutex_lock(&own->destroy);
        vxd_net_destroy(queue, network->net);
        /* Its memory is free for others when this returns. */
        (void)vxd_queue_wait(queue, NULL);
        (void)pthread_mutex_unlock(&own->destroy);
    }
    vxd_model_destroy(network->model);
}

static void free_own(void *user)
{
    struct own *own = user;

    (void)pthread_mutex_destroy(&own->keep);
    (void)pthread_mutex_destroy(&own->destroy);
    (void)pthread_mutex_destroy(&own->runs);
    free(own);
}

static const struct vxd_noun_calls calls = {.one = "network",
                                            .many = "networks",
                                            .max = VXD_NETWORKS_MAX,
                                            .n_bytes = sizeof(struct vxd_network),
                                            .uses_device = true,
                                            .has_quota = true,
                                            .quota = VXD_NOUN_NETWORK,
                                            .bytes_key = "limits.network_bytes",
                                            .count_bytes = count_bytes,
                                            .clear = clear,
                                            .free_own = free_own};

enum vxd_status vxd_networks_create(struct vxd_server *server, struct vxd_names **out,
                                    struct vxd_err *err)
{
    struct own *own = calloc(1, sizeof *own);
    struct vxd_names_options options = {.calls = &calls, .take_own = own};
    struct vxd_memory_usage memory;

    if (own == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the networks");
    }
    vxd_context_get_memory(server->context, &memory);
    own->server = server;
    own->budget_bytes = memory.device_budget_bytes;
    (void)pthread_mutex_init(&own->runs, NULL); /* on Linux it cannot fail */
    (void)pthread_mutex_init(&own->destroy, NULL);
    (void)pthread_mutex_init(&own->keep, NULL);
    options.limit_bytes = server->config.network_bytes > 0
                              ? server->config.network_bytes
                              : memory.device_budget_bytes / 4;
    return vxd_names_create(server, &options, out, err);
}

struct vxd_network *vxd_networks_find(struct vxd_names *networks, const char *name)
{
    return (struct vxd_network *)vxd_names_hold(networks, name);
}

void vxd_network_drop(struct vxd_network *network)
{
    if (network != NULL) {
        vxd_named_drop(&network->named, NULL);
    }
}

/* Takes the weights' bytes of the limits, the owner's first. */
static enum vxd_status take_bytes(struct vxd_network *network, struct vxd_err *err)
{
    uint64_t n_bytes = network->info.weight_bytes;
    uint64_t used;
    enum vxd_status status;

    VXD_TRY(vxd_named_check_bytes(&network->named, n_bytes, "the network", err));
    if (!vxd_named_take_bytes(&network->named, n_bytes, &used)) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "its weights take %" PRIu64
                         " bytes of the device; networks have %" PRIu64 " of %" PRIu64
                         ", limits.network_bytes",
                         n_bytes, used, vxd_names_limit_bytes(network->named.names)));
    }
out:
    return status;
}

static enum vxd_status build(struct vxd_network *network, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const struct vxd_net_options options = {.precision = network->precision,
                                            .max_rows = VXD_NETWORK_MAX_VOXELS,
                                            .max_samples = VXD_NETWORK_MAX_ITEMS};
    enum vxd_status status;

    VXD_TRY(vxd_net_create(queue, vxd_model_builder(network->model), &options,
                           &network->net, err));
    vxd_net_get_info(network->net, &network->info);
    VXD_TRY(take_bytes(network, err));
    VXD_TRY(vxd_network_warm_up(network, queue, err));
    if (vxd_context_backend(own_of(network)->server->context) != VXD_BACKEND_CUDA) {
        VXD_TRY(vxd_network_measure(network, queue, err));
    }
    network->loaded_unix_ns = vxd_clock_unix_ns();
out:
    return status;
}

enum vxd_status vxd_networks_load(struct vxd_names *networks, struct vxd_queue *queue,
                                  const char *name, int precision, const char *owner,
                                  bool *existed, struct vxd_network **out,
                                  struct vxd_err *err)
{
    const struct vxd_server *server = vxd_networks_server(networks);
    struct vxd_named_terms terms = {.durable = false};
    struct vxd_network *network = NULL;
    struct vxd_network *present = NULL;
    struct vxd_model *model = NULL;
    struct vxd_named *named = NULL;
    enum vxd_net_precision chosen;
    enum vxd_status status = VXD_OK;

    *existed = false;
    if (server->config.networks_dir[0] == '\0') {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        "the server has no networks_dir, so it has no networks to load");
    }
    VXD_TRY(vxd_model_read(server->config.networks_dir, name, &model, err));
    chosen = vxd_model_choose_precision(model, precision,
                                        vxd_context_backend(server->context));
    present = vxd_networks_find(networks, name);
    if (present != NULL && present->precision == chosen &&
        strcmp(vxd_model_digest(present->model), vxd_model_digest(model)) == 0) {
        *existed = true;
        *out = present;
        present = NULL;
        goto out;
    }
    (void)snprintf(terms.name, sizeof terms.name, "%s", name);
    (void)snprintf(terms.owner, sizeof terms.owner, "%s", owner);
    VXD_TRY(vxd_named_begin(networks, &terms, &named, err));
    network = (struct vxd_network *)named;
    network->model = model;
    network->wished_precision = precision;
    network->precision = chosen;
    model = NULL;
    vxd_named_enlist(named);
    VXD_TRY(build(network, queue, err));
    *out = network;
    network = NULL;
out:
    vxd_model_destroy(model);
    vxd_network_drop(present);
    vxd_network_drop(network);
    return status;
}

/* "NAME" or "NAME:fp16". */
static enum vxd_status split_configured(const char *text, char name[VXD_MODEL_NAME_BYTES],
                                        int *precision, struct vxd_err *err)
{
    static const char *const names[] = {
        [VXD_NET_FP32] = "fp32",
        [VXD_NET_TF32] = "tf32",
        [VXD_NET_FP16] = "fp16",
        [VXD_NET_BF16] = "bf16",
    };
    size_t n = strcspn(text, ":");

    if (n >= VXD_MODEL_NAME_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "\"%.80s\" must be NAME or NAME:PRECISION", text);
    }
    memcpy(name, text, n);
    name[n] = '\0';
    *precision = VXD_MODEL_ITS_PRECISION;
    if (strcmp(text + n, ":auto") == 0) {
        *precision = VXD_MODEL_AUTO_PRECISION;
    }
    for (int i = 0; text[n] == ':' && i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strcmp(text + n + 1, names[i]) == 0) {
            *precision = i;
        }
    }
    if (text[n] == ':' && *precision == VXD_MODEL_ITS_PRECISION) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "\"%.80s\": the precision must be fp32, tf32, fp16, bf16 or "
                        "auto",
                        text);
    }
    return VXD_OK;
}

static enum vxd_status load_configured(struct vxd_names *networks,
                                       struct vxd_queue *queue, const char *text,
                                       struct vxd_err *err)
{
    struct vxd_network *network = NULL;
    char name[VXD_MODEL_NAME_BYTES];
    int precision;
    bool existed;
    enum vxd_status status;

    VXD_TRY(split_configured(text, name, &precision, err));
    VXD_TRY(
        vxd_networks_load(networks, queue, name, precision, "", &existed, &network, err));
    (void)vxd_named_replace(&network->named, NULL);
    vxd_log(VXD_LOG_INFO, "network loaded", "network", name, "digest",
            vxd_model_digest(network->model));
    vxd_network_drop(network);
out:
    return status;
}

const struct vxd_server *vxd_networks_server(const struct vxd_names *networks)
{
    const struct own *own = vxd_names_own(networks);

    return own->server;
}

void vxd_networks_bring_back(struct vxd_names *networks,
                             const struct vxd_data_dir *data_dir)
{
    struct own *own = vxd_names_own(networks);
    struct vxd_err err;

    if (vxd_networks_read_list(networks, data_dir, &err) != VXD_OK) {
        vxd_log(VXD_LOG_WARNING, "the list of networks in data_dir cannot be read",
                "error", err.message);
    }
    own->data_dir = data_dir;
}

void vxd_networks_keep(struct vxd_names *networks)
{
    struct own *own = vxd_names_own(networks);
    struct vxd_err err;

    if (own->data_dir == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&own->keep);
    if (vxd_networks_write_list(networks, own->data_dir, &err) != VXD_OK) {
        vxd_log(VXD_LOG_WARNING,
                "the list of networks was not written: after a restart it is another",
                "error", err.message);
    }
    (void)pthread_mutex_unlock(&own->keep);
}

enum vxd_status vxd_networks_load_configured(struct vxd_names *networks,
                                             struct vxd_err *err)
{
    const struct vxd_server *server = vxd_networks_server(networks);
    const struct vxd_config *config = &server->config;
    struct vxd_queue *queue = NULL;
    enum vxd_status status = VXD_OK;

    if (config->n_networks == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_queue_create(server->context, &queue, err));
    for (size_t i = 0; i < config->n_networks; i++) {
        char reason[sizeof err->message];

        status = load_configured(networks, queue, config->networks[i], err);
        if (status != VXD_OK) {
            char field[32];

            (void)snprintf(reason, sizeof reason, "%s", err->message);
            (void)snprintf(field, sizeof field, "networks[%zu]", i);
            status = vxd_fail(err, status, field, "%.64s: %.170s", config->networks[i],
                              reason);
            goto out;
        }
    }
out:
    vxd_queue_destroy(queue);
    return status;
}

void vxd_network_note_run(struct vxd_network *network, uint64_t n_requests,
                          uint64_t n_points, const struct vxd_network_timings *timings)
{
    int64_t run_ns = timings->sets_ns + timings->layers_ns + timings->outputs_ns;

    (void)pthread_mutex_lock(&own_of(network)->runs);
    network->n_requests += n_requests;
    network->last = *timings;
    vxd_network_speed_note(&network->speed, (double)run_ns, (double)timings->n_voxels,
                           (double)n_points);
    (void)pthread_mutex_unlock(&own_of(network)->runs);
}

void vxd_network_note_expired(struct vxd_network *network)
{
    (void)pthread_mutex_lock(&own_of(network)->runs);
    vxd_network_speed_note_expired(&network->speed);
    (void)pthread_mutex_unlock(&own_of(network)->runs);
}

bool vxd_network_is_in_time(struct vxd_network *network,
                            const struct vxd_network_work *work, int64_t left_ns,
                            int64_t *expected_ns)
{
    bool is_in_time;

    (void)pthread_mutex_lock(&own_of(network)->runs);
    *expected_ns = (int64_t)(work->n_voxels > 0
                                 ? vxd_network_speed_of_voxels(&network->speed,
                                                               (double)work->n_voxels)
                                 : vxd_network_speed_of_points(&network->speed,
                                                               (double)work->n_points));
    is_in_time = *expected_ns <= left_ns;
    if (!is_in_time) {
        vxd_network_speed_note_refused(&network->speed);
    }
    (void)pthread_mutex_unlock(&own_of(network)->runs);
    return is_in_time;
}

void vxd_network_get_runs(const struct vxd_network *network, uint64_t *n_requests,
                          struct vxd_network_timings *last)
{
    (void)pthread_mutex_lock(&own_of(network)->runs);
    *n_requests = network->n_requests;
    *last = network->last;
    (void)pthread_mutex_unlock(&own_of(network)->runs);
}

uint64_t vxd_network_run_bytes(const struct vxd_network *network, size_t n_rows)
{
    const struct vxd_model *model = network->model;
    size_t element = vxd_net_element_bytes(network->precision);
    uint64_t row_bytes = network->info.n_maps * 32 * sizeof(int32_t);
    uint64_t most = 0;

    /* Estimates a run's memory: about two and a half times its largest live set, and all
     * its maps, of which those of coarser sets are smaller. */
    for (size_t i = 0; i < vxd_model_n_layers(model); i++) {
        const struct vxd_model_layer *layer = vxd_model_layer(model, i);
        uint64_t live = ((uint64_t)layer->n_in + (uint64_t)layer->n_out) * element;

        most = live > most ? live : most;
    }
    row_bytes += most * 5 / 2;
    if (n_rows > own_of(network)->budget_bytes / (row_bytes + 1)) {
        return own_of(network)->budget_bytes;
    }
    return n_rows * row_bytes;
}
