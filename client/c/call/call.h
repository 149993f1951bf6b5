// SPDX-License-Identifier: Apache-2.0
/* What the nouns of libvoxeld share: a connection, a call in flight, and memory of replies. */
#ifndef VXD_CLIENT_C_CALL_CALL_H
#define VXD_CLIENT_C_CALL_CALL_H

#include "client/c/call/client_internal.h"
#include "client/c/call/exchange.h"
#include "client/c/call/out_file.h"

#endif
