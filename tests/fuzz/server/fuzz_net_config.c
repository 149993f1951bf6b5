// SPDX-License-Identifier: Apache-2.0
/* Networks' configs: whatever the text, either a model that the engine takes or refuses, or a
 * reason. With weights drawn from the text's own tensors, so that what comes after them is
 * reached too. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/model/model.h"

enum {
    MAX_BYTES = 1 << 14
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/tmp/vxd-fuzz-net-XXXXXX";

static void remove_directory(void)
{
    char path[64];

    (void)snprintf(path, sizeof path, "%s/net.json", directory);
    (void)unlink(path);
    (void)rmdir(directory);
}

static bool put(const char *file, const uint8_t *data, size_t size)
{
    char path[128];
    FILE *to;
    bool ok;

    (void)snprintf(path, sizeof path, "%s/%s", directory, file);
    to = fopen(path, "wb");
    if (to == NULL) {
        return false;
    }
    ok = fwrite(data, 1, size, to) == size;
    return fclose(to) == 0 && ok;
}

/* Far above any corpus, below what draws for minutes. */
static bool is_small(const struct vxd_model *model)
{
    return vxd_model_n_parameters(model) < 1 << 20;
}

static void check_model(const struct vxd_model *model, struct vxd_queue *queue)
{
    const struct vxd_net_options options = {
        .max_rows = 100, .max_samples = 2, .max_bytes = 16 << 20};
    const struct vxd_model_input *input = vxd_model_input(model);
    struct vxd_net *net = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;

    assert(input->n_features >= 1 && input->n_features <= VXD_MAX_CHANNELS);
    assert(vxd_model_n_outputs(model) >= 1 &&
           vxd_model_n_outputs(model) <= VXD_NET_MAX_OUTPUTS);
    assert(strlen(vxd_model_digest(model)) == VXD_MODEL_DIGEST_BYTES - 1);
    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        const struct vxd_model_output *output = vxd_model_output(model, i);

        assert(output->n_labels == 0 || output->n_labels == output->n_channels);
        assert(output->stride[0] >= 1 && output->stride[1] >= 1 &&
               output->stride[2] >= 1);
    }
    if (!is_small(model)) {
        return;
    }
    status = vxd_net_create(queue, vxd_model_builder(model), &options, &net, &err);
    assert(status == VXD_OK || (err.code == status && err.message[0] != '\0'));
    vxd_net_destroy(queue, net);
    (void)vxd_queue_wait(queue, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vxd_context *context;
    static struct vxd_queue *queue;
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU,
                                                .n_threads = 1,
                                                .device_bytes = 64 << 20,
                                                .host_bytes = 64 << 20};
    /* A header without tensors: what is refused before weights are looked for. */
    static const uint8_t none[] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    struct vxd_model *model = NULL;
    struct vxd_err err = {0};
    enum vxd_status status;

    if (context == NULL) {
        assert(vxd_context_create(&options, &context, NULL) == VXD_OK);
        assert(vxd_queue_create(context, &queue, NULL) == VXD_OK);
        assert(mkdtemp(directory) != NULL && atexit(remove_directory) == 0);
    }
    if (size > MAX_BYTES) {
        return 0;
    }
    status =
        vxd_model_parse("net", (const char *)data, size, none, sizeof none, &model, &err);
    assert(status != VXD_OK ? model == NULL && err.message[0] != '\0' : model != NULL);
    vxd_model_destroy(model);
    if (!put("net.json", data, size)) {
        return 0;
    }
    memset(&err, 0, sizeof err);
    status = vxd_model_read_random(directory, "net", 1, &model, &err);
    assert(status != VXD_OK ? model == NULL && err.message[0] != '\0' : model != NULL);
    if (status == VXD_OK) {
        check_model(model, queue);
    }
    vxd_model_destroy(model);
    return 0;
}
