// SPDX-License-Identifier: Apache-2.0
/* The tokens file, and tokens that this server is said to have signed: whatever the bytes, either
 * tokens within their limits or a reason. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/access.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct vxd_token_key key = {{1}};
    static struct vxd_signed_token token;
    struct vxd_token_list list;
    struct vxd_err err = {0};
    char *text = malloc(size + 1);

    assert(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    assert(!vxd_signed_token_read(&key, text, &token));
    if (vxd_token_file_parse("tokens", text, size, NULL, &list, &err) != VXD_OK) {
        assert(err.code != VXD_OK && err.message[0] != '\0' && list.n == 0);
    }
    for (size_t i = 0; i < list.n; i++) {
        const struct vxd_token *t = &list.tokens[i];

        assert(vxd_is_name(t->name) && t->scopes != 0 && t->scopes <= VXD_ALL_SCOPES);
        assert(vxd_rules_weight(t->rules) >= 1 && vxd_rules_weight(t->rules) <= 100);
        (void)vxd_rules_allow_name(t->rules, VXD_NOUN_SCENE, "yard");
        (void)vxd_rules_allow_method(t->rules, "map_get");
    }
    vxd_token_list_clear(&list);
    free(text);
    return 0;
}
