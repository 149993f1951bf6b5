// SPDX-License-Identifier: Apache-2.0
/* Scenes as bytes. Numbers are encoded as in bytes.h (base 128), doubles as their 8
 * bytes, little end first, and a text as its length and its bytes.
 *
 *   description   1, or 2 with what stands behind [2], or 3 with what stands behind [3], too
 *                 text name, text owner, number max_bytes, number keep_versions,
 *                 number keep_seconds, number fsync, number journal_max_bytes
 *                 number depth, number material_bits, number tracks_free (0, 1)
 *                 double voxel_size_m, 3 doubles origin_m, text frame_id
 *                 number n_palette, then each: text name, number rgb
 *                 number generation, signed created_unix_ns
 *                 [2] of a scene that fuses by log-odds: 5 doubles odds (hit, miss, clamp_low,
 *                 clamp_high, occupied), signed hit, miss, low, high, occupied in steps,
 *                 2 doubles step and error
 *                 [3] number of votes for materials
 *   version       number number, kind, of_version, undone_by, root; signed unix_ns;
 *                 numbers n_added, n_removed, n_changed, n_freed; text by, text client_id
 *   history       number n, n versions; number n_snapshots, each: text name, text by,
 *                 signed taken_unix_ns, version
 *   item          text scene, text name, text by, signed taken_unix_ns, number version */
#include "server/registry/scenes/scene_catalogue.h"

#include <math.h>
#include <nettle/sha2.h>

#include "proto/base/name.h"

enum {
    LAYOUT = 1,
    LOG_ODDS_LAYOUT = 2,
    VOTES_LAYOUT = 3
};

/* --- writing ---------------------------------------------------------------------------- */

static void put_text(struct vxd_bytes_out *out, const char *text)
{
    size_t n = strlen(text);

    vxd_bytes_put_number(out, n);
    vxd_bytes_put(out, text, n);
}

static void put_double(struct vxd_bytes_out *out, double value)
{
    uint8_t bytes[8];
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(bits >> (8 * i));
    }
    vxd_bytes_put(out, bytes, sizeof bytes);
}

static void put_log_odds(struct vxd_bytes_out *out, const struct vxd_scene_spec *spec)
{
    put_double(out, spec->odds.hit);
    put_double(out, spec->odds.miss);
    put_double(out, spec->odds.clamp_low);
    put_double(out, spec->odds.clamp_high);
    put_double(out, spec->odds.occupied);
    vxd_bytes_put_signed(out, spec->rule.hit);
    vxd_bytes_put_signed(out, spec->rule.miss);
    vxd_bytes_put_signed(out, spec->rule.low);
    vxd_bytes_put_signed(out, spec->rule.high);
    vxd_bytes_put_signed(out, spec->rule.occupied);
    put_double(out, spec->rule.step);
    put_double(out, spec->rule.error);
}

void vxd_scene_describe(struct vxd_bytes_out *out, const struct vxd_scene_terms *terms,
                        const struct vxd_scene_spec *spec, uint64_t generation,
                        int64_t created_unix_ns)
{
    bool fuses = spec->fusion == VXD_SCENE_LOG_ODDS;

    vxd_bytes_put_number(out, !fuses                  ? LAYOUT
                              : spec->odds.votes == 0 ? LOG_ODDS_LAYOUT
                                                      : VOTES_LAYOUT);
    put_text(out, terms->name);
    put_text(out, terms->owner);
    vxd_bytes_put_number(out, terms->max_bytes);
    vxd_bytes_put_number(out, terms->keep_versions);
    vxd_bytes_put_number(out, terms->keep_seconds);
    vxd_bytes_put_number(out, (uint64_t)terms->fsync);
    vxd_bytes_put_number(out, terms->journal_max_bytes);
    vxd_bytes_put_number(out, (uint64_t)spec->format.depth);
    vxd_bytes_put_number(out, (uint64_t)spec->format.material_bits);
    vxd_bytes_put_number(out, spec->format.tracks_free ? 1 : 0);
    put_double(out, spec->voxel_size_m);
    for (int i = 0; i < 3; i++) {
        put_double(out, spec->origin_m[i]);
    }
    put_text(out, spec->frame_id);
    vxd_bytes_put_number(out, spec->n_palette);
    for (size_t i = 0; i < spec->n_palette; i++) {
        put_text(out, spec->palette[i].name);
        vxd_bytes_put_number(out, spec->palette[i].rgb);
    }
    vxd_bytes_put_number(out, generation);
    vxd_bytes_put_signed(out, created_unix_ns);
    if (fuses) {
        put_log_odds(out, spec);
    }
    if (fuses && spec->odds.votes != 0) {
        vxd_bytes_put_number(out, (uint64_t)spec->odds.votes);
    }
}

static void put_version(struct vxd_bytes_out *out,
                        const struct vxd_scene_version *version, uint64_t undone_by,
                        uint64_t root)
{
    vxd_bytes_put_number(out, version->number);
    vxd_bytes_put_number(out, (uint64_t)version->kind);
    vxd_bytes_put_number(out, version->of_version);
    vxd_bytes_put_number(out, undone_by);
    vxd_bytes_put_number(out, root);
    vxd_bytes_put_signed(out, version->unix_ns);
    vxd_bytes_put_number(out, version->n_added);
    vxd_bytes_put_number(out, version->n_removed);
    vxd_bytes_put_number(out, version->n_changed);
    vxd_bytes_put_number(out, version->n_freed);
    put_text(out, version->by);
    put_text(out, version->client_id);
}

void vxd_scene_write_history(struct vxd_bytes_out *out,
                             const struct vxd_scene_history *history, uint32_t *roots,
                             size_t *n_roots)
{
    size_t n = history->n - history->n_waiting;

    vxd_bytes_put_number(out, n);
    for (size_t i = 0; i < n; i++) {
        const struct vxd_scene_version *version = &history->versions[i];

        put_version(out, version, vxd_scene_undone_by(history, version), *n_roots);
        roots[(*n_roots)++] = history->versions[i].root;
    }
    vxd_bytes_put_number(out, history->n_snapshots);
    for (size_t i = 0; i < history->n_snapshots; i++) {
        const struct vxd_scene_snapshot *snapshot = &history->snapshots[i];

        put_text(out, snapshot->name);
        put_text(out, snapshot->by);
        vxd_bytes_put_signed(out, snapshot->taken_unix_ns);
        put_version(out, &snapshot->version, snapshot->version.undone_by, *n_roots);
        roots[(*n_roots)++] = snapshot->version.root;
    }
}

bool vxd_scene_has_upkeep(const struct vxd_scene *scene)
{
    const struct vxd_scene_history *history = &scene->history;
    bool has = scene->log_odds.decayed_ns != 0;

    for (size_t i = 0; i < history->n - history->n_waiting && !has; i++) {
        has = history->versions[i].pins != VXD_SVDAG_EMPTY ||
              history->versions[i].kind == VXD_SCENE_DECAYED;
    }
    for (size_t i = 0; i < history->n_snapshots && !has; i++) {
        has = history->snapshots[i].version.pins != VXD_SVDAG_EMPTY ||
              history->snapshots[i].version.kind == VXD_SCENE_DECAYED;
    }
    return has;
}

/* Adds the number of a version's pins among the roots, or 0. Equal ones follow one another. */
static void put_pins(struct vxd_bytes_out *out, uint32_t pins, uint32_t *roots,
                     size_t *n_roots)
{
    if (pins != VXD_SVDAG_EMPTY && roots[*n_roots - 1] != pins) {
        roots[(*n_roots)++] = pins;
    }
    vxd_bytes_put_number(out, pins != VXD_SVDAG_EMPTY ? *n_roots - 1 : 0);
}

void vxd_scene_write_upkeep(struct vxd_bytes_out *out, const struct vxd_scene *scene,
                            uint32_t *roots, size_t *n_roots)
{
    const struct vxd_scene_history *history = &scene->history;

    vxd_bytes_put_signed(out, scene->log_odds.decayed_ns);
    for (size_t i = 0; i < history->n - history->n_waiting; i++) {
        put_pins(out, history->versions[i].pins, roots, n_roots);
    }
    for (size_t i = 0; i < history->n_snapshots; i++) {
        put_pins(out, history->snapshots[i].version.pins, roots, n_roots);
    }
}

void vxd_scene_item_name(const char *scene, const char *snapshot,
                         char out[VXD_SCENE_ITEM_BYTES])
{
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];

    sha256_init(&hash);
    sha256_update(&hash, strlen(scene) + 1, (const uint8_t *)scene);
    sha256_update(&hash, strlen(snapshot), (const uint8_t *)snapshot);
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < 24; i++) {
        (void)snprintf(out + 2 * i, VXD_SCENE_ITEM_BYTES - 2 * i, "%02x", digest[i]);
    }
}

void vxd_scene_write_named(struct vxd_bytes_out *out, const char *scene,
                           const struct vxd_scene_snapshot *snapshot)
{
    put_text(out, scene);
    put_text(out, snapshot->name);
    put_text(out, snapshot->by);
    vxd_bytes_put_signed(out, snapshot->taken_unix_ns);
    vxd_bytes_put_number(out, snapshot->version.number);
}

/* --- reading ---------------------------------------------------------------------------- */

static enum vxd_status fail_bytes(struct vxd_err *err, const struct vxd_bytes_in *in)
{
    return vxd_fail(err, VXD_DATA_LOSS, NULL,
                    "a scene's description is damaged at byte %zu", in->at);
}

/* Reads a text of at most size - 1 bytes, none of them 0. */
static void get_text(struct vxd_bytes_in *in, char *to, size_t size)
{
    uint64_t n = vxd_bytes_get_number(in);
    const uint8_t *from = n < size ? vxd_bytes_get(in, (size_t)n) : NULL;

    to[0] = '\0';
    if (from == NULL || memchr(from, 0, (size_t)n) != NULL) {
        in->is_bad = true;
        return;
    }
    memcpy(to, from, (size_t)n);
    to[n] = '\0';
}

static double get_double(struct vxd_bytes_in *in)
{
    const uint8_t *from = vxd_bytes_get(in, 8);
    uint64_t bits = 0;
    double value;

    for (int i = 0; from != NULL && i < 8; i++) {
        bits |= (uint64_t)from[i] << (8 * i);
    }
    memcpy(&value, &bits, sizeof value);
    in->is_bad = in->is_bad || !isfinite(value);
    return value;
}

/* Reads a number of at most `most`. */
static uint64_t get_below(struct vxd_bytes_in *in, uint64_t most)
{
    uint64_t value = vxd_bytes_get_number(in);

    in->is_bad = in->is_bad || value > most;
    return in->is_bad ? 0 : value;
}

static void get_terms(struct vxd_bytes_in *in, struct vxd_scene_terms *terms)
{
    get_text(in, terms->name, sizeof terms->name);
    get_text(in, terms->owner, sizeof terms->owner);
    terms->max_bytes = vxd_bytes_get_number(in);
    terms->keep_versions = (uint32_t)get_below(in, VXD_SCENE_MAX_VERSIONS);
    terms->keep_seconds = vxd_bytes_get_number(in);
    terms->durable = true;
    terms->fsync = (enum vxd_fsync)get_below(in, VXD_FSYNC_OFF);
    terms->journal_max_bytes = vxd_bytes_get_number(in);
    in->is_bad = in->is_bad || !vxd_is_name(terms->name) || terms->keep_versions == 0;
}

static void get_spec(struct vxd_bytes_in *in, struct vxd_scene_spec *spec)
{
    spec->format.depth = (int)get_below(in, VXD_SVDAG_MAX_DEPTH);
    spec->format.material_bits = (int)get_below(in, 16);
    spec->format.tracks_free = get_below(in, 1) != 0;
    spec->voxel_size_m = get_double(in);
    for (int i = 0; i < 3; i++) {
        spec->origin_m[i] = get_double(in);
    }
    get_text(in, spec->frame_id, sizeof spec->frame_id);
    in->is_bad = in->is_bad || !(spec->voxel_size_m > 0);
}

/* Reads a number of steps, 0 where it is none. */
static int32_t get_steps(struct vxd_bytes_in *in)
{
    int64_t value = vxd_bytes_get_signed(in);

    in->is_bad = in->is_bad || value < -127 || value > 127;
    return in->is_bad ? 0 : (int32_t)value;
}

static void get_log_odds(struct vxd_bytes_in *in, struct vxd_scene_spec *spec)
{
    struct vxd_occupancy_rule *rule = &spec->rule;

    spec->odds.hit = get_double(in);
    spec->odds.miss = get_double(in);
    spec->odds.clamp_low = get_double(in);
    spec->odds.clamp_high = get_double(in);
    spec->odds.occupied = get_double(in);
    rule->hit = get_steps(in);
    rule->miss = get_steps(in);
    rule->low = get_steps(in);
    rule->high = get_steps(in);
    rule->occupied = get_steps(in);
    rule->step = get_double(in);
    rule->error = get_double(in);
    in->is_bad = in->is_bad || !spec->format.tracks_free || rule->hit <= 0 ||
                 rule->miss >= 0 || rule->low >= rule->occupied ||
                 rule->high < rule->occupied;
}

/* Allocates the entries, with space for their names behind them. */
static enum vxd_status get_palette(struct vxd_bytes_in *in,
                                   struct vxd_scene_described *out, struct vxd_err *err)
{
    size_t n = (size_t)get_below(in, UINT16_MAX + 1);
    char *names;

    /* An entry has at least two bytes. */
    if (in->is_bad || n > in->n - in->at) {
        return fail_bytes(err, in);
    }
    out->palette = calloc(n > 0 ? n : 1, sizeof *out->palette + VXD_NAME_BYTES);
    if (out->palette == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a palette");
    }
    names = (char *)(out->palette + n);
    for (size_t i = 0; i < n && !in->is_bad; i++) {
        get_text(in, names + i * VXD_NAME_BYTES, VXD_NAME_BYTES);
        out->palette[i].name = names + i * VXD_NAME_BYTES;
        out->palette[i].rgb = (uint32_t)get_below(in, 0xffffff);
    }
    out->spec.palette = out->palette;
    out->spec.n_palette = n;
    return VXD_OK;
}

enum vxd_status vxd_scene_read_description(struct vxd_bytes_in *in,
                                           struct vxd_scene_described *out,
                                           struct vxd_err *err)
{
    uint64_t layout;
    enum vxd_status status;

    memset(out, 0, sizeof *out);
    layout = vxd_bytes_get_number(in);
    if (layout < LAYOUT || layout > VOTES_LAYOUT) {
        return fail_bytes(err, in);
    }
    get_terms(in, &out->terms);
    get_spec(in, &out->spec);
    status = get_palette(in, out, err);
    out->generation = vxd_bytes_get_number(in);
    out->created_unix_ns = vxd_bytes_get_signed(in);
    out->spec.fusion = layout == LAYOUT ? VXD_SCENE_LAST : VXD_SCENE_LOG_ODDS;
    if (layout != LAYOUT && status == VXD_OK) {
        get_log_odds(in, &out->spec);
    }
    if (layout == VOTES_LAYOUT && status == VXD_OK) {
        out->spec.odds.votes = (int32_t)get_below(in, VXD_OCCUPANCY_MAX_VOTES);
        out->spec.rule.votes = out->spec.odds.votes;
        in->is_bad = in->is_bad || out->spec.odds.votes < 2;
    }
    if (status == VXD_OK && in->is_bad) {
        status = fail_bytes(err, in);
    }
    if (status != VXD_OK) {
        free(out->palette);
        out->palette = NULL;
    }
    return status;
}

static void get_version(struct vxd_bytes_in *in, struct vxd_scene_version *version,
                        uint64_t n_roots)
{
    version->number = vxd_bytes_get_number(in);
    version->kind = (enum vxd_scene_made_by)get_below(in, VXD_SCENE_DECAYED);
    version->of_version = vxd_bytes_get_number(in);
    version->undone_by = vxd_bytes_get_number(in);
    version->root = (uint32_t)get_below(in, n_roots > 0 ? n_roots - 1 : 0);
    version->unix_ns = vxd_bytes_get_signed(in);
    version->n_added = vxd_bytes_get_number(in);
    version->n_removed = vxd_bytes_get_number(in);
    version->n_changed = vxd_bytes_get_number(in);
    version->n_freed = vxd_bytes_get_number(in);
    get_text(in, version->by, sizeof version->by);
    get_text(in, version->client_id, sizeof version->client_id);
    in->is_bad = in->is_bad || version->number == 0 || n_roots == 0;
}

enum vxd_status vxd_scene_read_history(struct vxd_bytes_in *in,
                                       struct vxd_scene_history *out, uint64_t n_roots,
                                       struct vxd_err *err)
{
    size_t n;

    memset(out, 0, sizeof *out);
    n = (size_t)get_below(in, VXD_SCENE_MAX_VERSIONS);
    if (in->is_bad || n == 0) {
        return fail_bytes(err, in);
    }
    out->versions = calloc(n, sizeof *out->versions);
    out->snapshots = calloc(VXD_SCENE_MAX_SNAPSHOTS, sizeof *out->snapshots);
    if (out->versions == NULL || out->snapshots == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for versions");
    }
    out->n = n;
    out->capacity = n;
    for (size_t i = 0; i < n && !in->is_bad; i++) {
        get_version(in, &out->versions[i], n_roots);
        /* Versions are found by their numbers, which must have no gaps. */
        in->is_bad = in->is_bad || out->versions[i].number != out->versions[0].number + i;
    }
    out->n_snapshots = (size_t)get_below(in, VXD_SCENE_MAX_SNAPSHOTS);
    for (size_t i = 0; i < out->n_snapshots && !in->is_bad; i++) {
        struct vxd_scene_snapshot *snapshot = &out->snapshots[i];

        get_text(in, snapshot->name, sizeof snapshot->name);
        get_text(in, snapshot->by, sizeof snapshot->by);
        snapshot->taken_unix_ns = vxd_bytes_get_signed(in);
        get_version(in, &snapshot->version, n_roots);
        in->is_bad = in->is_bad ||
                     (i > 0 && strcmp(out->snapshots[i - 1].name, snapshot->name) >= 0);
    }
    return in->is_bad ? fail_bytes(err, in) : VXD_OK;
}

enum vxd_status vxd_scene_read_upkeep(struct vxd_bytes_in *in, struct vxd_scene *scene,
                                      const uint32_t *roots, size_t n_roots,
                                      struct vxd_err *err)
{
    struct vxd_scene_history *history = &scene->history;

    scene->log_odds.decayed_ns = vxd_bytes_get_signed(in);
    for (size_t i = 0; i < history->n + history->n_filed && !in->is_bad; i++) {
        struct vxd_scene_version *version = i < history->n
                                                ? &history->versions[i]
                                                : &history->filed[i - history->n].version;
        uint64_t number = get_below(in, n_roots - 1);

        version->pins = number > 0 && !in->is_bad ? roots[number] : VXD_SVDAG_EMPTY;
    }
    return in->is_bad ? fail_bytes(err, in) : VXD_OK;
}

enum vxd_status vxd_scene_read_named(struct vxd_bytes_in *in, char scene[VXD_NAME_BYTES],
                                     struct vxd_scene_snapshot *out, struct vxd_err *err)
{
    memset(out, 0, sizeof *out);
    get_text(in, scene, VXD_NAME_BYTES);
    get_text(in, out->name, sizeof out->name);
    get_text(in, out->by, sizeof out->by);
    out->taken_unix_ns = vxd_bytes_get_signed(in);
    out->version.number = vxd_bytes_get_number(in);
    return in->is_bad ? fail_bytes(err, in) : VXD_OK;
}
