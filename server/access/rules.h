// SPDX-License-Identifier: Apache-2.0
/* What a token may do beyond its scopes: which names it may use, which methods it may call, how
 * much it may ask for, and its weight among others. They are what stands behind the hash in a line of
 * the tokens file, KEY=VALUE each:
 *
 *   names=team-a-,shared   prefixes of the names that it may use, of whatever noun; * = all, - = none
 *   scenes= maps= volumes= odometries= posegraphs= networks= files= backups=   the same for one noun,
 *                          instead of names=
 *   methods=map_*,status   the only methods that it may call; * at the end stands for any rest
 *   deny=map_drop          methods that it may not call, whatever methods= says
 *   requests_per_s= in_flight= lane_s_per_minute=      quotas of requests
 *   max_scenes= max_maps= max_volumes= max_odometries= max_posegraphs= max_networks= max_bytes=
 *                          quotas of what it made and nobody dropped
 *   max_files=             saved files whose names it may use
 *   weight=                its share among others that wait, 1 to 100
 *
 * What is not there is not limited. Rules are immutable once they are read, and have references. */
#ifndef VXD_SERVER_ACCESS_RULES_H
#define VXD_SERVER_ACCESS_RULES_H

#include <stdatomic.h>

#include "proto/base/base.h"

/* What names belong to. The schema's option `object` says which field holds which. */
enum vxd_noun {
    VXD_NOUN_MAP = 0,
    VXD_NOUN_SCENE = 1,
    VXD_NOUN_NETWORK = 2,
    VXD_NOUN_VOLUME = 3,
    VXD_NOUN_FILE = 4,
    VXD_NOUN_BACKUP = 5,
    VXD_NOUN_POSEGRAPH = 6,
    VXD_NOUN_ODOMETRY = 7,
    VXD_N_NOUNS = 8
};

/* 0 = no limit. */
struct vxd_quota {
    uint32_t requests_per_s;
    uint32_t in_flight;
    uint32_t lane_s_per_minute;
    uint32_t max_held[VXD_N_NOUNS]; /* how many of each noun */
    uint64_t max_bytes;             /* of all nouns together */
};

struct vxd_rules {
    atomic_int references;
    struct vxd_rules *base; /* which hold, too: those of whoever issued the token */
    char *names[VXD_N_NOUNS +
                1]; /* comma lists; the last one is of all others; NULL: not said */
    char *methods;  /* NULL: all */
    char *denied;   /* NULL: none */
    struct vxd_quota quota;
    uint32_t weight;
};

/* The names of the methods that there are, to find misspelt ones. */
struct vxd_method_names {
    const char *const *names;
    size_t n;
};

/* Makes rules that limit nothing, with one reference. take_base, which may be NULL, becomes theirs.
 * NULL where there is no memory; the reference to the base is given back then. */
struct vxd_rules *vxd_rules_create(struct vxd_rules *take_base);
/* NULL is fine for both. */
struct vxd_rules *vxd_rules_hold(struct vxd_rules *rules);
void vxd_rules_drop(struct vxd_rules *rules);

/* Reads one KEY=VALUE into rules that nobody else has yet.
 *
 * in      methods  what methods= and deny= may name; NULL: anything
 * errors  INVALID_ARGUMENT    says what is wrong and what would be right
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_rules_read(struct vxd_rules *rules, const char *text,
                               const struct vxd_method_names *methods,
                               struct vxd_err *err);

/* Whether these rules, and those that they are based on, allow it. NULL allows everything. */
bool vxd_rules_allow_name(const struct vxd_rules *rules, enum vxd_noun noun,
                          const char *name);
bool vxd_rules_allow_method(const struct vxd_rules *rules, const char *method);

/* Whether names of that prefix are all allowed for some noun. */
bool vxd_rules_allow_prefix(const struct vxd_rules *rules, const char *prefix);

/* The list that refuses the name, for a message; NULL where none does. */
const char *vxd_rules_names_list(const struct vxd_rules *rules, enum vxd_noun noun,
                                 const char *name);

/* The quotas and the weight that hold: the last base's, since issued tokens share their issuer's. */
const struct vxd_quota *vxd_rules_quota(const struct vxd_rules *rules);
uint32_t vxd_rules_weight(const struct vxd_rules *rules);

/* "map", "scene", ... */
const char *vxd_noun_name(enum vxd_noun noun);
/* "maps", "scenes", ... */
const char *vxd_noun_plural(enum vxd_noun noun);

#endif
