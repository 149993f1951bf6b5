// SPDX-License-Identifier: Apache-2.0
/* Who may do what, and how much of it. */
#ifndef VXD_SERVER_ACCESS_ACCESS_H
#define VXD_SERVER_ACCESS_ACCESS_H

#include "server/access/account.h"
#include "server/access/auth.h"
#include "server/access/objects.h"
#include "server/access/rules.h"
#include "server/access/signed_token.h"
#include "server/access/token_file.h"

#endif
