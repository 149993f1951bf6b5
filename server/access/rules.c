// SPDX-License-Identifier: Apache-2.0
#include "server/access/rules.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PREFIX_BYTES = 63,
    MAX_WEIGHT = 100,
    MAX_HELD = 65536
};

/* Where the quota of how many there may be of a noun is. */
#define HELD(noun)                                                                       \
    (offsetof(struct vxd_rules, quota.max_held) + (noun) * sizeof(uint32_t))

static const char name_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
static const char method_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
static const struct vxd_quota no_quota;

static const struct {
    const char *name;
    const char *key;
} nouns[VXD_N_NOUNS + 1] = {
    [VXD_NOUN_MAP] = {"map", "maps"},
    [VXD_NOUN_SCENE] = {"scene", "scenes"},
    [VXD_NOUN_NETWORK] = {"network", "networks"},
    [VXD_NOUN_VOLUME] = {"volume", "volumes"},
    [VXD_NOUN_POSEGRAPH] = {"posegraph", "posegraphs"},
    [VXD_NOUN_FILE] = {"file", "files"},
    [VXD_NOUN_BACKUP] = {"backup", "backups"},
    [VXD_NOUN_ODOMETRY] = {"odometry", "odometries"},
    [VXD_N_NOUNS] = {"object", "names"},
};

static const struct {
    const char *key;
    size_t offset; /* in struct vxd_rules */
    uint32_t low;
    uint32_t high;
} numbers[] = {
    {"requests_per_s", offsetof(struct vxd_rules, quota.requests_per_s), 1, 1000000},
    {"in_flight", offsetof(struct vxd_rules, quota.in_flight), 1, 65536},
    {"lane_s_per_minute", offsetof(struct vxd_rules, quota.lane_s_per_minute), 1, 3600},
    {"max_scenes", HELD(VXD_NOUN_SCENE), 1, MAX_HELD},
    {"max_maps", HELD(VXD_NOUN_MAP), 1, MAX_HELD},
    {"max_volumes", HELD(VXD_NOUN_VOLUME), 1, MAX_HELD},
    {"max_odometries", HELD(VXD_NOUN_ODOMETRY), 1, MAX_HELD},
    {"max_posegraphs", HELD(VXD_NOUN_POSEGRAPH), 1, MAX_HELD},
    {"max_networks", HELD(VXD_NOUN_NETWORK), 1, MAX_HELD},
    {"max_files", HELD(VXD_NOUN_FILE), 1, MAX_HELD},
    {"weight", offsetof(struct vxd_rules, weight), 1, MAX_WEIGHT},
};

const char *vxd_noun_name(enum vxd_noun noun)
{
    return nouns[noun].name;
}

const char *vxd_noun_plural(enum vxd_noun noun)
{
    return nouns[noun].key;
}

struct vxd_rules *vxd_rules_create(struct vxd_rules *take_base)
{
    struct vxd_rules *rules = calloc(1, sizeof *rules);

    if (rules == NULL) {
        vxd_rules_drop(take_base);
        return NULL;
    }
    atomic_init(&rules->references, 1);
    rules->base = take_base;
    rules->weight = 1;
    return rules;
}

struct vxd_rules *vxd_rules_hold(struct vxd_rules *rules)
{
    if (rules != NULL) {
        (void)atomic_fetch_add_explicit(&rules->references, 1, memory_order_relaxed);
    }
    return rules;
}

void vxd_rules_drop(struct vxd_rules *rules)
{
    while (rules != NULL &&
           atomic_fetch_sub_explicit(&rules->references, 1, memory_order_acq_rel) == 1) {
        struct vxd_rules *base = rules->base;

        for (size_t i = 0; i <= VXD_N_NOUNS; i++) {
            free(rules->names[i]);
        }
        free(rules->methods);
        free(rules->denied);
        free(rules);
        rules = base;
    }
}

/* Moves to the next item of a comma list; false behind the last one. */
static bool next_item(const char **at, const char **item, size_t *n)
{
    if (*at == NULL) {
        return false;
    }
    *item = *at;
    *n = strcspn(*at, ",");
    *at = (*at)[*n] == ',' ? *at + *n + 1 : NULL;
    return true;
}

static bool is_prefix(const char *item, size_t n)
{
    return n >= 1 && n <= MAX_PREFIX_BYTES && strchr("._-", item[0]) == NULL &&
           strspn(item, name_characters) >= n;
}

static enum vxd_status check_prefixes(const char *key, const char *list,
                                      struct vxd_err *err)
{
    const char *at = list;
    const char *item;
    size_t n;

    if (strcmp(list, "*") == 0 || strcmp(list, "-") == 0) {
        return VXD_OK;
    }
    while (next_item(&at, &item, &n)) {
        if (!is_prefix(item, n)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "%s= is a comma list of what names begin with, "
                            "[a-z0-9][a-z0-9._-]{0,62} each, or * for all, or - for none",
                            key);
        }
    }
    return VXD_OK;
}

/* Whether an item of methods= or deny= stands for this method. */
static bool is_method_of(const char *item, size_t n, const char *method)
{
    if (n > 0 && item[n - 1] == '*') {
        return strncmp(item, method, n - 1) == 0;
    }
    return strlen(method) == n && memcmp(item, method, n) == 0;
}

static bool is_any_method(const char *item, size_t n,
                          const struct vxd_method_names *methods)
{
    for (size_t i = 0; methods != NULL && i < methods->n; i++) {
        if (is_method_of(item, n, methods->names[i])) {
            return true;
        }
    }
    return methods == NULL;
}

static enum vxd_status check_methods(const char *key, const char *list,
                                     const struct vxd_method_names *methods,
                                     struct vxd_err *err)
{
    const char *at = list;
    const char *item;
    size_t n;

    while (next_item(&at, &item, &n)) {
        size_t n_name = n > 0 && item[n - 1] == '*' ? n - 1 : n;

        if (n == 0 || strspn(item, method_characters) < n_name) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "%s= is a comma list of methods, map_get or map_*", key);
        }
        if (!is_any_method(item, n, methods)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "%s= names %.*s, and there is no such method", key,
                            n < 64 ? (int)n : 64, item);
        }
    }
    return VXD_OK;
}

static enum vxd_status keep(const char *key, const char *value, char **out,
                            struct vxd_err *err)
{
    if (*out != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "%s= is there twice", key);
    }
    *out = strdup(value);
    return *out != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the tokens");
}

/* Digits only: no sign, no spaces. */
static bool read_number(const char *text, uint64_t high, uint64_t *out)
{
    uint64_t value = 0;

    if (text[0] == '\0' || strlen(text) > 19) {
        return false;
    }
    for (const char *s = text; *s != '\0'; s++) {
        if (*s < '0' || *s > '9') {
            return false;
        }
        value = value * 10 + (uint64_t)(*s - '0');
    }
    *out = value;
    return value <= high;
}

static enum vxd_status read_quota(struct vxd_rules *rules, const char *key,
                                  const char *value, bool *is_known, struct vxd_err *err)
{
    static const uint64_t max_bytes = UINT64_C(1) << 62;
    uint64_t number;

    *is_known = true;
    if (strcmp(key, "max_bytes") == 0) {
        if (!read_number(value, max_bytes, &number) || number == 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "max_bytes= is a whole number, 1 to %" PRIu64, max_bytes);
        }
        rules->quota.max_bytes = number;
        return VXD_OK;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(key, numbers[i].key) != 0) {
            continue;
        }
        if (!read_number(value, numbers[i].high, &number) || number < numbers[i].low) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "%s= is a whole number, %u to %u", key, numbers[i].low,
                            numbers[i].high);
        }
        *(uint32_t *)(void *)((char *)rules + numbers[i].offset) = (uint32_t)number;
        return VXD_OK;
    }
    *is_known = false;
    return VXD_OK;
}

enum vxd_status vxd_rules_read(struct vxd_rules *rules, const char *text,
                               const struct vxd_method_names *methods,
                               struct vxd_err *err)
{
    const char *equals = strchr(text, '=');
    const char *value = equals != NULL ? equals + 1 : "";
    char key[32];
    bool is_known;
    enum vxd_status status;

    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof key) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "behind the hash stand rules, KEY=VALUE each");
    }
    memcpy(key, text, (size_t)(equals - text));
    key[equals - text] = '\0';
    for (size_t i = 0; i <= VXD_N_NOUNS; i++) {
        if (strcmp(key, nouns[i].key) == 0) {
            status = check_prefixes(key, value, err);
            return status == VXD_OK ? keep(key, value, &rules->names[i], err) : status;
        }
    }
    if (strcmp(key, "methods") == 0 || strcmp(key, "deny") == 0) {
        status = check_methods(key, value, methods, err);
        return status == VXD_OK
                   ? keep(key, value, key[0] == 'm' ? &rules->methods : &rules->denied,
                          err)
                   : status;
    }
    VXD_TRY(read_quota(rules, key, value, &is_known, err));
    if (!is_known) {
        VXD_TRY(vxd_fail(
            err, VXD_INVALID_ARGUMENT, NULL,
            "there is no rule %.31s=; there are names, scenes, maps, "
            "volumes, odometries, posegraphs, networks, files, backups, methods, deny, "
            "requests_per_s, in_flight, lane_s_per_minute, max_..., weight",
            key));
    }
out:
    return status;
}

static const char *list_of(const struct vxd_rules *rules, enum vxd_noun noun)
{
    return rules->names[noun] != NULL ? rules->names[noun] : rules->names[VXD_N_NOUNS];
}

/* Whether a list, which may be NULL, has a prefix of the name. */
static bool has_prefix_of(const char *list, const char *name)
{
    const char *at = list;
    const char *item;
    size_t n;

    if (list == NULL || strcmp(list, "*") == 0) {
        return true;
    }
    if (strcmp(list, "-") == 0) {
        return false;
    }
    while (next_item(&at, &item, &n)) {
        if (strncmp(item, name, n) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_method(const char *list, const char *method)
{
    const char *at = list;
    const char *item;
    size_t n;

    while (next_item(&at, &item, &n)) {
        if (is_method_of(item, n, method)) {
            return true;
        }
    }
    return false;
}

const char *vxd_rules_names_list(const struct vxd_rules *rules, enum vxd_noun noun,
                                 const char *name)
{
    for (const struct vxd_rules *r = rules; r != NULL; r = r->base) {
        if (!has_prefix_of(list_of(r, noun), name)) {
            return list_of(r, noun);
        }
    }
    return NULL;
}

bool vxd_rules_allow_name(const struct vxd_rules *rules, enum vxd_noun noun,
                          const char *name)
{
    return vxd_rules_names_list(rules, noun, name) == NULL;
}

bool vxd_rules_allow_method(const struct vxd_rules *rules, const char *method)
{
    for (const struct vxd_rules *r = rules; r != NULL; r = r->base) {
        if ((r->methods != NULL && !has_method(r->methods, method)) ||
            (r->denied != NULL && has_method(r->denied, method))) {
            return false;
        }
    }
    return true;
}

bool vxd_rules_allow_prefix(const struct vxd_rules *rules, const char *prefix)
{
    for (int noun = 0; noun < VXD_N_NOUNS; noun++) {
        if (vxd_rules_allow_name(rules, (enum vxd_noun)noun, prefix)) {
            return true;
        }
    }
    return false;
}

static const struct vxd_rules *last_base(const struct vxd_rules *rules)
{
    while (rules != NULL && rules->base != NULL) {
        rules = rules->base;
    }
    return rules;
}

const struct vxd_quota *vxd_rules_quota(const struct vxd_rules *rules)
{
    const struct vxd_rules *last = last_base(rules);

    return last != NULL ? &last->quota : &no_quota;
}

uint32_t vxd_rules_weight(const struct vxd_rules *rules)
{
    const struct vxd_rules *last = last_base(rules);

    return last != NULL ? last->weight : 1;
}
