// SPDX-License-Identifier: Apache-2.0
/* The configuration file: whatever the bytes, either a configuration within all its limits
 * or a reason, and then nothing has changed. */
#include <assert.h>
#include <string.h>

#include "server/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vxd_config before;
    static struct vxd_config config;
    struct vxd_err err = {0};
    enum vxd_status status;

    vxd_config_default(&before);
    config = before;
    status = vxd_config_parse("fuzz.json", (const char *)data, size, &config, &err);
    if (status != VXD_OK) {
        assert(err.code == status && err.message[0] != '\0');
        assert(memcmp(&before, &config, sizeof config) == 0);
        return 0;
    }
    assert(config.n_rpc <= VXD_CONFIG_MAX_LISTEN);
    assert(config.n_ipc_uids <= VXD_CONFIG_MAX_UIDS);
    assert(config.n_allowed_hosts <= VXD_CONFIG_MAX_ORIGINS);
    assert(config.n_allowed_origins <= VXD_CONFIG_MAX_ORIGINS);
    assert(config.n_read_lanes <= 16);
    assert(config.queue_limit >= 1 && config.queue_limit <= 4096);
    assert(config.ipc_mode <= 0777);
    assert(memchr(config.data_dir, '\0', sizeof config.data_dir) != NULL);
    assert(memchr(config.backend, '\0', sizeof config.backend) != NULL);
    for (size_t i = 0; i < config.n_rpc; i++) {
        assert(memchr(config.rpc[i], '\0', sizeof config.rpc[i]) != NULL);
    }
    status = vxd_config_check(&config, &err);
    assert(status == VXD_OK || (err.code == status && err.field[0] != '\0'));
    return 0;
}
