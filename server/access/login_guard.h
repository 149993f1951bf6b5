// SPDX-License-Identifier: Apache-2.0
/* Limits failed logins of an address, so that tokens cannot be guessed fast. An address may fail so many
 * times, and once more whenever its share of a minute has passed. Beyond that a token that this
 * address has not had success with lately is refused whether it is right or not, which shows a
 * guesser nothing; one that it has is not, so that whoever guesses locks nobody out who is there.
 *
 * Of an address the 64 tokens are known that it has used last; all addresses take 0.6 MiB.
 *
 * Addresses are hosts, of IPv6 their /64, or on this host users; about the last 1024 of them are known.
 * Thread-safe. */
#ifndef VXD_SERVER_ACCESS_LOGIN_GUARD_H
#define VXD_SERVER_ACCESS_LOGIN_GUARD_H

#include "proto/base/base.h"

struct vxd_login_guard;

/* in      per_minute  failures of an address; 0 = no limit
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_login_guard_create(uint32_t per_minute, struct vxd_login_guard **out,
                                       struct vxd_err *err);
/* NULL is fine. */
void vxd_login_guard_destroy(struct vxd_login_guard *guard);

/* Says what becomes of a login, and counts it.
 *
 * in      peer     as request_life.h has it: "tcp 10.0.0.7:4242", "http ::1:5555"; or "uid-1000"
 *         token    a digest of the token, of at least 8 bytes
 *         is_good  it is one of ours
 * errors  UNAUTHENTICATED     it is none of ours
 *         RESOURCE_EXHAUSTED  the address has failed too often; says how long to wait */
enum vxd_status vxd_login_guard_judge(struct vxd_login_guard *guard, const char *peer,
                                      const uint8_t *token, bool is_good, int64_t now_ns,
                                      struct vxd_err *err);

#endif
