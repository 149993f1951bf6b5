// SPDX-License-Identifier: Apache-2.0
/* Networks are in one list in order of their names, under one mutex. Whatever takes long
 * (files, building, giving memory back) happens outside of it. */
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

struct vxd_networks {
    const struct vxd_server *server;
    uint64_t limit_bytes;
    uint64_t budget_bytes; /* of the engine */

    pthread_mutex_t
        mutex; /* guards list, counts, and what networks say is the registry's */
    struct vxd_network *first;
    size_t n_networks;
    uint64_t n_bytes; /* of all that exist, findable or not */

    /* Only one thread may use a queue at a time, and networks are freed by whoever drops
     * them last. */
    pthread_mutex_t destroy_mutex;
    struct vxd_queue *queue;

    pthread_mutex_t keep_mutex;          /* held while the list in data_dir is written */
    const struct vxd_data_dir *data_dir; /* NULL: none is kept */
};

static void lock(const struct vxd_networks *networks)
{
    /* Functions that only read lock through a const pointer. */
    (void)pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&networks->mutex);
}

static void unlock(const struct vxd_networks *networks)
{
    (void)pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&networks->mutex);
}

enum vxd_status vxd_networks_create(struct vxd_server *server, struct vxd_networks **out,
                                    struct vxd_err *err)
{
    struct vxd_networks *networks = calloc(1, sizeof *networks);
    struct vxd_memory_usage memory;
    enum vxd_status status;

    if (networks == NULL || pthread_mutex_init(&networks->mutex, NULL) != 0) {
        free(networks);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the networks");
    }
    if (pthread_mutex_init(&networks->destroy_mutex, NULL) != 0 ||
        pthread_mutex_init(&networks->keep_mutex, NULL) != 0) {
        (void)pthread_mutex_destroy(&networks->mutex);
        free(networks);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the networks");
    }
    vxd_context_get_memory(server->context, &memory);
    networks->server = server;
    networks->budget_bytes = memory.device_budget_bytes;
    networks->limit_bytes = server->config.network_bytes > 0
                                ? server->config.network_bytes
                                : memory.device_budget_bytes / 4;
    status = vxd_queue_create(server->context, &networks->queue, err);
    if (status != VXD_OK) {
        vxd_networks_destroy(networks);
        return status;
    }
    *out = networks;
    return VXD_OK;
}

void vxd_networks_destroy(struct vxd_networks *networks)
{
    if (networks == NULL) {
        return;
    }
    while (networks->first != NULL) {
        (void)vxd_networks_remove(networks, vxd_model_name(networks->first->model));
    }
    vxd_queue_destroy(networks->queue);
    (void)pthread_mutex_destroy(&networks->keep_mutex);
    (void)pthread_mutex_destroy(&networks->destroy_mutex);
    (void)pthread_mutex_destroy(&networks->mutex);
    free(networks);
}

static void destroy(struct vxd_network *network)
{
    struct vxd_networks *networks = network->networks;

    (void)pthread_mutex_lock(&networks->destroy_mutex);
    if (network->net != NULL) {
        vxd_net_destroy(networks->queue, network->net);
        /* Frees a network; its memory is free for others when this returns. */
        (void)vxd_queue_wait(networks->queue, NULL);
    }
    (void)pthread_mutex_unlock(&networks->destroy_mutex);
    lock(networks);
    networks->n_bytes -= network->n_bytes;
    unlock(networks);
    vxd_auth_note_bytes(networks->server->auth, network->owner, network->n_bytes, 0);
    vxd_model_destroy(network->model);
    free(network);
}

void vxd_network_hold(struct vxd_network *network)
{
    lock(network->networks);
    network->references++;
    unlock(network->networks);
}

void vxd_network_drop(struct vxd_network *network)
{
    bool is_last;

    if (network == NULL) {
        return;
    }
    lock(network->networks);
    is_last = --network->references == 0;
    unlock(network->networks);
    if (is_last) {
        destroy(network);
    }
}

/* Finds the place in the list where the network of that name is, or would be. The mutex
 * is held. */
static struct vxd_network **find_link(struct vxd_networks *networks, const char *name)
{
    struct vxd_network **at = &networks->first;

    while (*at != NULL && strcmp(vxd_model_name((*at)->model), name) < 0) {
        at = &(*at)->next;
    }
    return at;
}

static bool is_named(const struct vxd_network *network, const char *name)
{
    return network != NULL && strcmp(vxd_model_name(network->model), name) == 0;
}

struct vxd_network *vxd_networks_find(struct vxd_networks *networks, const char *name)
{
    struct vxd_network *found;

    lock(networks);
    found = *find_link(networks, name);
    if (is_named(found, name)) {
        found->references++;
    } else {
        found = NULL;
    }
    unlock(networks);
    return found;
}

size_t vxd_networks_list(struct vxd_networks *networks,
                         struct vxd_network *out[VXD_NETWORKS_MAX])
{
    size_t n = 0;

    lock(networks);
    for (struct vxd_network *p = networks->first; p != NULL; p = p->next) {
        p->references++;
        out[n++] = p;
    }
    unlock(networks);
    return n;
}

bool vxd_networks_remove(struct vxd_networks *networks, const char *name)
{
    struct vxd_network **at;
    struct vxd_network *found = NULL;

    lock(networks);
    at = find_link(networks, name);
    if (is_named(*at, name)) {
        found = *at;
        *at = found->next;
        networks->n_networks--;
    }
    unlock(networks);
    vxd_network_drop(found);
    return found != NULL;
}

bool vxd_networks_publish(struct vxd_networks *networks, struct vxd_network *network)
{
    const char *name = vxd_model_name(network->model);
    struct vxd_network **at;
    struct vxd_network *old = NULL;

    lock(networks);
    at = find_link(networks, name);
    if (*at == network) {
        unlock(networks);
        return false;
    }
    network->references++;
    if (is_named(*at, name)) {
        old = *at;
        *at = old->next;
        networks->n_networks--;
    }
    network->next = *at;
    *at = network;
    networks->n_networks++;
    unlock(networks);
    vxd_network_drop(old);
    return old != NULL;
}

/* Whether the owner may have this network, beside its networks of other names. */
static enum vxd_status check_owner(const struct vxd_network *network, struct vxd_err *err)
{
    struct vxd_networks *networks = network->networks;
    const char *name = vxd_model_name(network->model);
    size_t n = 0;
    enum vxd_status status;

    lock(networks);
    for (const struct vxd_network *other = networks->first; other != NULL;
         other = other->next) {
        n += strcmp(other->owner, network->owner) == 0 && !is_named(other, name) ? 1 : 0;
    }
    unlock(networks);
    VXD_TRY(vxd_auth_check_held(networks->server->auth, network->owner, VXD_NOUN_NETWORK,
                                n, err));
    status = vxd_auth_check_bytes(networks->server->auth, network->owner, 0,
                                  network->info.weight_bytes, "the network", err);
out:
    return status;
}

/* Reserves the weights' bytes of the limit. */
static enum vxd_status account(struct vxd_network *network, struct vxd_err *err)
{
    struct vxd_networks *networks = network->networks;
    uint64_t n_bytes = network->info.weight_bytes;
    uint64_t used;
    size_t n_networks;

    lock(networks);
    used = networks->n_bytes;
    n_networks = networks->n_networks;
    if (n_networks < VXD_NETWORKS_MAX && used <= networks->limit_bytes &&
        n_bytes <= networks->limit_bytes - used) {
        network->n_bytes = (size_t)n_bytes;
        networks->n_bytes += n_bytes;
    }
    unlock(networks);
    if (network->n_bytes == n_bytes) {
        vxd_auth_note_bytes(networks->server->auth, network->owner, 0, n_bytes);
        return VXD_OK;
    }
    if (n_networks >= VXD_NETWORKS_MAX) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "there are %d networks already", VXD_NETWORKS_MAX);
    }
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "its weights take %" PRIu64
                    " bytes of the device; networks have %" PRIu64 " of %" PRIu64
                    ", limits.network_bytes",
                    n_bytes, used, networks->limit_bytes);
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
    VXD_TRY(check_owner(network, err));
    VXD_TRY(account(network, err));
    VXD_TRY(vxd_network_warm_up(network, queue, err));
    if (vxd_context_backend(network->networks->server->context) != VXD_BACKEND_CUDA) {
        VXD_TRY(vxd_network_measure(network, queue, err));
    }
    network->loaded_unix_ns = vxd_clock_unix_ns();
out:
    return status;
}

enum vxd_status vxd_networks_load(struct vxd_networks *networks, struct vxd_queue *queue,
                                  const char *name, int precision, const char *owner,
                                  bool *existed, struct vxd_network **out,
                                  struct vxd_err *err)
{
    const char *directory = networks->server->config.networks_dir;
    struct vxd_network *network = NULL;
    struct vxd_network *present = NULL;
    enum vxd_status status = VXD_OK;

    *existed = false;
    if (directory[0] == '\0') {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        "the server has no networks_dir, so it has no networks to load");
    }
    network = calloc(1, sizeof *network);
    if (network == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a network");
    }
    network->networks = networks;
    network->references = 1;
    (void)snprintf(network->owner, sizeof network->owner, "%s", owner);
    VXD_TRY(vxd_model_read(directory, name, &network->model, err));
    network->wished_precision = precision;
    network->precision = vxd_model_choose_precision(
        network->model, precision, vxd_context_backend(networks->server->context));
    present = vxd_networks_find(networks, name);
    if (present != NULL && present->precision == network->precision &&
        strcmp(vxd_model_digest(present->model), vxd_model_digest(network->model)) == 0) {
        *existed = true;
        *out = present;
        vxd_network_drop(network);
        return VXD_OK;
    }
    VXD_TRY(build(network, queue, err));
    *out = network;
    network = NULL;
out:
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

static enum vxd_status load_configured(struct vxd_networks *networks,
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
    (void)vxd_networks_publish(networks, network);
    vxd_log(VXD_LOG_INFO, "network loaded", "network", name, "digest",
            vxd_model_digest(network->model));
    vxd_network_drop(network);
out:
    return status;
}

const struct vxd_server *vxd_networks_server(const struct vxd_networks *networks)
{
    return networks->server;
}

void vxd_networks_bring_back(struct vxd_networks *networks,
                             const struct vxd_data_dir *data_dir)
{
    struct vxd_err err;

    if (vxd_networks_read_list(networks, data_dir, &err) != VXD_OK) {
        vxd_log(VXD_LOG_WARNING, "the list of networks in data_dir cannot be read",
                "error", err.message);
    }
    networks->data_dir = data_dir;
}

void vxd_networks_keep(struct vxd_networks *networks)
{
    struct vxd_err err;

    if (networks->data_dir == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&networks->keep_mutex);
    if (vxd_networks_write_list(networks, networks->data_dir, &err) != VXD_OK) {
        vxd_log(VXD_LOG_WARNING,
                "the list of networks was not written: after a restart it is another",
                "error", err.message);
    }
    (void)pthread_mutex_unlock(&networks->keep_mutex);
}

enum vxd_status vxd_networks_load_configured(struct vxd_networks *networks,
                                             struct vxd_err *err)
{
    const struct vxd_config *config = &networks->server->config;
    struct vxd_queue *queue = NULL;
    enum vxd_status status = VXD_OK;

    if (config->n_networks == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_queue_create(networks->server->context, &queue, err));
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

    lock(network->networks);
    network->n_requests += n_requests;
    network->last = *timings;
    vxd_network_speed_note(&network->speed, (double)run_ns, (double)timings->n_voxels,
                           (double)n_points);
    unlock(network->networks);
}

void vxd_network_note_expired(struct vxd_network *network)
{
    lock(network->networks);
    vxd_network_speed_note_expired(&network->speed);
    unlock(network->networks);
}

bool vxd_network_is_in_time(struct vxd_network *network,
                            const struct vxd_network_work *work, int64_t left_ns,
                            int64_t *expected_ns)
{
    bool is_in_time;

    lock(network->networks);
    *expected_ns = (int64_t)(work->n_voxels > 0
                                 ? vxd_network_speed_of_voxels(&network->speed,
                                                               (double)work->n_voxels)
                                 : vxd_network_speed_of_points(&network->speed,
                                                               (double)work->n_points));
    is_in_time = *expected_ns <= left_ns;
    if (!is_in_time) {
        vxd_network_speed_note_refused(&network->speed);
    }
    unlock(network->networks);
    return is_in_time;
}

void vxd_network_get_runs(const struct vxd_network *network, uint64_t *n_requests,
                          struct vxd_network_timings *last)
{
    lock(network->networks);
    *n_requests = network->n_requests;
    *last = network->last;
    unlock(network->networks);
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
    if (n_rows > network->networks->budget_bytes / (row_bytes + 1)) {
        return network->networks->budget_bytes;
    }
    return n_rows * row_bytes;
}

void vxd_networks_get_usage(struct vxd_networks *networks, struct vxd_networks_usage *out)
{
    lock(networks);
    out->n_networks = networks->n_networks;
    out->n_bytes = networks->n_bytes;
    out->limit_bytes = networks->limit_bytes;
    unlock(networks);
}
