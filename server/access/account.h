// SPDX-License-Identifier: Apache-2.0
/* What the senders of one name (a token's, or that of a user on an ipc socket) have asked for, and
 * whether it is within their quota. An account lives as long as its table, reloads included; about
 * 4096 names have one each, all others share one. Thread-safe. */
#ifndef VXD_SERVER_ACCESS_ACCOUNT_H
#define VXD_SERVER_ACCESS_ACCOUNT_H

#include "proto/base/name.h"
#include "server/access/rules.h"

struct vxd_accounts;
struct vxd_account;

enum {
    VXD_MAX_ACCOUNTS = 4352 /* 4096 tokens and some users */
};

/* Why a request was refused; each is a label of a metric. */
enum vxd_refusal {
    VXD_REFUSED_SCOPE = 0,
    VXD_REFUSED_METHOD = 1,
    VXD_REFUSED_NAME = 2,
    VXD_REFUSED_RATE = 3,
    VXD_REFUSED_IN_FLIGHT = 4,
    VXD_REFUSED_LANE_TIME = 5,
    VXD_REFUSED_HELD = 6, /* max_scenes, max_maps, ..., max_bytes */
    VXD_REFUSED_QUEUE = 7,
    VXD_N_REFUSALS = 8
};

struct vxd_account_usage {
    char name[VXD_NAME_BYTES];
    uint64_t n_requests;
    uint64_t n_refused[VXD_N_REFUSALS];
    uint64_t n_in_flight;
    uint64_t lane_ns; /* in all */
    uint64_t n_bytes; /* that what it has made takes */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_accounts_create(struct vxd_accounts **out, struct vxd_err *err);
/* NULL is fine. */
void vxd_accounts_destroy(struct vxd_accounts *accounts);

/* Finds the account of a name, and makes one where there is none. Never NULL. */
struct vxd_account *vxd_accounts_find(struct vxd_accounts *accounts, const char *name);

/* Fills in up to `capacity` accounts that were asked for anything, those that were made first; where there are more, the last one
 * is the sum of them. Returns how many. */
size_t vxd_accounts_list(struct vxd_accounts *accounts, struct vxd_account_usage *out,
                         size_t capacity);

/* A request comes: counts it, as one in flight where it is within the quota. vxd_account_end ends it.
 * errors  RESOURCE_EXHAUSTED  says the figure, the limit, its key and when to come again */
enum vxd_status vxd_account_begin(struct vxd_account *account,
                                  const struct vxd_quota *quota, int64_t now_ns,
                                  struct vxd_err *err);
void vxd_account_end(struct vxd_account *account);

/* A lane worked so long for it. */
void vxd_account_charge(struct vxd_account *account, const struct vxd_quota *quota,
                        int64_t lane_ns, int64_t now_ns);

/* What the account's things take in all: notes that one of them took `before` bytes and takes `now`,
 * and says it. */
void vxd_account_note_bytes(struct vxd_account *account, uint64_t before, uint64_t now);
uint64_t vxd_account_bytes(const struct vxd_account *account);

/* A number of the account's own, below VXD_MAX_ACCOUNTS. */
size_t vxd_account_index(const struct vxd_account *account);

/* Counts a refusal that was decided elsewhere. NULL is fine. */
void vxd_account_refuse(struct vxd_account *account, enum vxd_refusal why);

/* "scope", "method", ... */
const char *vxd_refusal_name(enum vxd_refusal why);

#endif
