// SPDX-License-Identifier: Apache-2.0
/* Rates are kept as times. Requests: each moves a clock of the account on by its share of a second,
 * and that clock may be at most a second ahead (the generic cell rate algorithm). Time of lanes: a
 * bucket of what a minute allows, which leaks evenly. */
#include "server/access/account.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 1024,
    MINUTE_S = 60,
    /* Accounts that are there from the start: of whom most are without tokens, and of whoever finds
     * no place. */
    FIXED_ANONYMOUS = 0,
    FIXED_OTHERS = 1,
    N_FIXED = 2
};

#define SECOND_NS INT64_C(1000000000)

struct vxd_account {
    char name[VXD_NAME_BYTES];
    size_t index;
    struct vxd_account *in_bucket;
    struct vxd_account *next; /* made later */
    _Atomic uint64_t n_bytes; /* of its things */
    pthread_mutex_t mutex;    /* guards all below */
    struct vxd_account_usage usage;
    int64_t requests_until_ns; /* the requests so far are paid for until then */
    int64_t lane_ns;           /* in the bucket */
    int64_t leaked_ns;         /* when it leaked last */
};

struct vxd_accounts {
    pthread_mutex_t mutex; /* guards all below */
    struct vxd_account *buckets[BUCKETS];
    struct vxd_account *first;
    struct vxd_account *last;
    size_t n;
    struct vxd_account fixed[N_FIXED];
};

static const char *const refusal_names[VXD_N_REFUSALS] = {
    "scope", "method", "name", "requests_per_s", "in_flight", "lane_s_per_minute",
    "held",  "queue"};

const char *vxd_refusal_name(enum vxd_refusal why)
{
    return refusal_names[why];
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *s = name; *s != '\0'; s++) {
        hash = (hash ^ (unsigned char)*s) * 16777619u;
    }
    return hash ^ (hash >> 16);
}

/* Gives an account, whose mutex is not there yet, a place in the table; the table's is held. */
static bool enter(struct vxd_accounts *accounts, struct vxd_account *account,
                  const char *name)
{
    struct vxd_account **bucket = &accounts->buckets[hash_of(name) % BUCKETS];

    if (pthread_mutex_init(&account->mutex, NULL) != 0) {
        return false;
    }
    (void)snprintf(account->name, sizeof account->name, "%s", name);
    account->in_bucket = *bucket;
    *bucket = account;
    *(accounts->last != NULL ? &accounts->last->next : &accounts->first) = account;
    accounts->last = account;
    account->index = accounts->n++;
    return true;
}

static bool is_fixed(const struct vxd_accounts *accounts,
                     const struct vxd_account *account)
{
    return account >= accounts->fixed && account < accounts->fixed + N_FIXED;
}

enum vxd_status vxd_accounts_create(struct vxd_accounts **out, struct vxd_err *err)
{
    struct vxd_accounts *accounts = calloc(1, sizeof *accounts);

    if (accounts == NULL || pthread_mutex_init(&accounts->mutex, NULL) != 0) {
        free(accounts);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for accounts");
    }
    if (!enter(accounts, &accounts->fixed[FIXED_ANONYMOUS], "anonymous") ||
        !enter(accounts, &accounts->fixed[FIXED_OTHERS], "(others)")) {
        vxd_accounts_destroy(accounts);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for accounts");
    }
    *out = accounts;
    return VXD_OK;
}

void vxd_accounts_destroy(struct vxd_accounts *accounts)
{
    struct vxd_account *next;

    if (accounts == NULL) {
        return;
    }
    for (struct vxd_account *a = accounts->first; a != NULL; a = next) {
        next = a->next;
        (void)pthread_mutex_destroy(&a->mutex);
        if (!is_fixed(accounts, a)) {
            free(a);
        }
    }
    (void)pthread_mutex_destroy(&accounts->mutex);
    free(accounts);
}

/* The mutex is held. */
static struct vxd_account *add(struct vxd_accounts *accounts, const char *name)
{
    struct vxd_account *account =
        accounts->n < VXD_MAX_ACCOUNTS ? calloc(1, sizeof *account) : NULL;

    if (account == NULL || !enter(accounts, account, name)) {
        free(account);
        return &accounts->fixed[FIXED_OTHERS];
    }
    return account;
}

struct vxd_account *vxd_accounts_find(struct vxd_accounts *accounts, const char *name)
{
    struct vxd_account *account;

    (void)pthread_mutex_lock(&accounts->mutex);
    account = accounts->buckets[hash_of(name) % BUCKETS];
    while (account != NULL && strcmp(account->name, name) != 0) {
        account = account->in_bucket;
    }
    if (account == NULL) {
        account = add(accounts, name);
    }
    (void)pthread_mutex_unlock(&accounts->mutex);
    return account;
}

static void copy_usage(struct vxd_account *account, struct vxd_account_usage *out)
{
    (void)pthread_mutex_lock(&account->mutex);
    *out = account->usage;
    (void)pthread_mutex_unlock(&account->mutex);
    memcpy(out->name, account->name, sizeof out->name);
    out->n_bytes = atomic_load(&account->n_bytes);
}

static bool is_used(const struct vxd_account_usage *usage)
{
    uint64_t n = usage->n_requests + usage->n_bytes;

    for (int i = 0; i < VXD_N_REFUSALS; i++) {
        n += usage->n_refused[i];
    }
    return n > 0;
}

/* Two names as one. */
static void add_usage(struct vxd_account_usage *sum, const struct vxd_account_usage *more)
{
    (void)snprintf(sum->name, sizeof sum->name, "(others)");
    sum->n_requests += more->n_requests;
    sum->n_in_flight += more->n_in_flight;
    sum->lane_ns += more->lane_ns;
    sum->n_bytes += more->n_bytes;
    for (int i = 0; i < VXD_N_REFUSALS; i++) {
        sum->n_refused[i] += more->n_refused[i];
    }
}

size_t vxd_accounts_list(struct vxd_accounts *accounts, struct vxd_account_usage *out,
                         size_t capacity)
{
    struct vxd_account *account;
    size_t n = 0;

    (void)pthread_mutex_lock(&accounts->mutex);
    account = accounts->first;
    (void)pthread_mutex_unlock(&accounts->mutex);
    while (account != NULL) {
        struct vxd_account_usage usage;

        copy_usage(account, &usage);
        if (is_used(&usage) && n < capacity) {
            out[n++] = usage;
        } else if (is_used(&usage) && capacity > 0) {
            add_usage(&out[capacity - 1], &usage);
        }
        (void)pthread_mutex_lock(&accounts->mutex);
        account = account->next;
        (void)pthread_mutex_unlock(&accounts->mutex);
    }
    return n;
}

static enum vxd_status fail_quota(struct vxd_account *account, enum vxd_refusal why,
                                  uint64_t figure, const char *unit, uint32_t limit,
                                  int64_t wait_ns, struct vxd_err *err)
{
    account->usage.n_refused[why]++;
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "%s has %" PRIu64 " %s, %s of it is %u (tokens file); try again in "
                    "%.1f s",
                    account->name, figure, unit, vxd_refusal_name(why), limit,
                    (double)wait_ns / 1e9);
}

/* The account's mutex is held. */
static enum vxd_status check_rate(struct vxd_account *account, uint32_t per_s,
                                  int64_t now_ns, struct vxd_err *err)
{
    int64_t share_ns = SECOND_NS / per_s;
    int64_t until_ns =
        account->requests_until_ns > now_ns ? account->requests_until_ns : now_ns;
    int64_t wait_ns = until_ns + share_ns - now_ns - SECOND_NS;

    if (wait_ns > 0) {
        return fail_quota(account, VXD_REFUSED_RATE, per_s, "requests in the last second",
                          per_s, wait_ns, err);
    }
    account->requests_until_ns = until_ns + share_ns;
    return VXD_OK;
}

static void leak(struct vxd_account *account, uint32_t per_minute, int64_t now_ns)
{
    int64_t elapsed_ns = now_ns - account->leaked_ns;
    double gone = (double)elapsed_ns * per_minute / MINUTE_S;

    account->leaked_ns = now_ns;
    account->lane_ns =
        gone < (double)account->lane_ns ? account->lane_ns - (int64_t)gone : 0;
}

static enum vxd_status check_lane_time(struct vxd_account *account, uint32_t per_minute,
                                       int64_t now_ns, struct vxd_err *err)
{
    int64_t limit_ns = per_minute * SECOND_NS;

    leak(account, per_minute, now_ns);
    if (account->lane_ns < limit_ns) {
        return VXD_OK;
    }
    return fail_quota(
        account, VXD_REFUSED_LANE_TIME, (uint64_t)(account->lane_ns / SECOND_NS),
        "seconds of lanes in the last minute", per_minute,
        (account->lane_ns - limit_ns + 1) / per_minute * MINUTE_S + SECOND_NS / 10, err);
}

enum vxd_status vxd_account_begin(struct vxd_account *account,
                                  const struct vxd_quota *quota, int64_t now_ns,
                                  struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    (void)pthread_mutex_lock(&account->mutex);
    account->usage.n_requests++;
    if (quota->in_flight > 0 && account->usage.n_in_flight >= quota->in_flight) {
        VXD_TRY(fail_quota(account, VXD_REFUSED_IN_FLIGHT, account->usage.n_in_flight,
                           "requests in flight", quota->in_flight, SECOND_NS / 10, err));
    }
    if (quota->lane_s_per_minute > 0) {
        VXD_TRY(check_lane_time(account, quota->lane_s_per_minute, now_ns, err));
    }
    if (quota->requests_per_s > 0) { /* the last one, since it takes something */
        VXD_TRY(check_rate(account, quota->requests_per_s, now_ns, err));
    }
    account->usage.n_in_flight++;
out:
    (void)pthread_mutex_unlock(&account->mutex);
    return status;
}

void vxd_account_end(struct vxd_account *account)
{
    (void)pthread_mutex_lock(&account->mutex);
    account->usage.n_in_flight--;
    (void)pthread_mutex_unlock(&account->mutex);
}

void vxd_account_charge(struct vxd_account *account, const struct vxd_quota *quota,
                        int64_t lane_ns, int64_t now_ns)
{
    (void)pthread_mutex_lock(&account->mutex);
    account->usage.lane_ns += (uint64_t)lane_ns;
    if (quota->lane_s_per_minute > 0) {
        leak(account, quota->lane_s_per_minute, now_ns);
        account->lane_ns += lane_ns;
    }
    (void)pthread_mutex_unlock(&account->mutex);
}

void vxd_account_note_bytes(struct vxd_account *account, uint64_t before, uint64_t now)
{
    atomic_fetch_add(&account->n_bytes, now);
    atomic_fetch_sub(&account->n_bytes, before);
}

uint64_t vxd_account_bytes(const struct vxd_account *account)
{
    return atomic_load(&account->n_bytes);
}

size_t vxd_account_index(const struct vxd_account *account)
{
    return account->index;
}

void vxd_account_refuse(struct vxd_account *account, enum vxd_refusal why)
{
    if (account != NULL) {
        (void)pthread_mutex_lock(&account->mutex);
        account->usage.n_refused[why]++;
        (void)pthread_mutex_unlock(&account->mutex);
    }
}
