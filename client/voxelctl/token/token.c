// SPDX-License-Identifier: Apache-2.0
/* voxelctl token: short-lived tokens. */
#include "client/voxelctl/generated/token_args.h"

/* The token alone on a line, so that a shell can take it. */
void ctl_print_token(const struct voxeld_token *token)
{
    (void)puts(token->token);
}
