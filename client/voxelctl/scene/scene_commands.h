// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl scene share. */
#ifndef VXD_CLIENT_VOXELCTL_SCENE_SCENE_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_SCENE_SCENE_COMMANDS_H

#include "client/voxelctl/cli/cli.h"

enum {
    CTL_SCENE_MAX_PALETTE = 256,
    CTL_SCENE_MAX_FILES = 64
};

/* Options of voxelctl scene; each subcommand takes some of them. */
enum ctl_scene_option {
    CTL_SCENE_SIZE = CTL_OPT_FIRST_OWN,
    CTL_SCENE_DEPTH,
    CTL_SCENE_BITS,
    CTL_SCENE_TRACK_FREE,
    CTL_SCENE_ORIGIN,
    CTL_SCENE_FRAME,
    CTL_SCENE_PALETTE,
    CTL_SCENE_MAX_BYTES,
    CTL_SCENE_MISSING_OK,
    CTL_SCENE_BOX,
    CTL_SCENE_BALL,
    CTL_SCENE_CAPSULE,
    CTL_SCENE_HALF_SPACE,
    CTL_SCENE_POINTS,
    CTL_SCENE_NOISE,
    CTL_SCENE_FILL,
    CTL_SCENE_ERASE,
    CTL_SCENE_FREE,
    CTL_SCENE_PAINT,
    CTL_SCENE_SWAP,
    CTL_SCENE_ERODE,
    CTL_SCENE_DILATE,
    CTL_SCENE_COPY_FROM,
    CTL_SCENE_TURN,
    CTL_SCENE_COPY_EMPTY,
    CTL_SCENE_OPERATIONS,
    CTL_SCENE_IN_VOXELS,
    CTL_SCENE_IF_VERSION,
    CTL_SCENE_NAME,
    CTL_SCENE_POSES,
    CTL_SCENE_FORMAT,
    CTL_SCENE_NO_CARVE,
    CTL_SCENE_MAX_RANGE,
    CTL_SCENE_RULE,
    CTL_SCENE_MATERIAL,
    CTL_SCENE_FIELD,
    CTL_SCENE_RANGE,
    CTL_SCENE_RETRY,
    CTL_SCENE_RADIUS,
    CTL_SCENE_COUNTS,
    CTL_SCENE_OUT,
    CTL_SCENE_LEVEL,
    CTL_SCENE_DENSE,
    CTL_SCENE_MATERIALS,
    CTL_SCENE_NETWORK,
    CTL_SCENE_LABELS,
    CTL_SCENE_OUTPUT,
    CTL_SCENE_DIGEST,
    CTL_SCENE_HEIGHTS,
    CTL_SCENE_GRID,
    CTL_SCENE_POINT_MATERIALS,
    CTL_SCENE_KEEP,
    CTL_SCENE_KEEP_SECONDS,
    CTL_SCENE_DURABLE,
    CTL_SCENE_JOURNAL_BYTES,
    CTL_SCENE_OF,
    CTL_SCENE_AT,
    CTL_SCENE_MOVE,
    CTL_SCENE_UNNAME,
    CTL_SCENE_FROM,
    CTL_SCENE_TO,
    CTL_SCENE_TO_SCENE,
    CTL_SCENE_LIMIT,
    CTL_SCENE_DRY_RUN,
    CTL_SCENE_FUSION,
    CTL_SCENE_LOG_ODDS,
    CTL_SCENE_DISCRETIZE,
    CTL_SCENE_HALF_LIFE,
    CTL_SCENE_ELAPSED,
    CTL_SCENE_UNTIL,
    CTL_SCENE_FACTOR,
    CTL_SCENE_STEP,
    CTL_SCENE_KEEP_BALL,
    CTL_SCENE_PIN,
    CTL_SCENE_UNPIN,
    CTL_SCENE_LEAVE,
    CTL_SCENE_PINNED,
    CTL_SCENE_GROUND,
    CTL_SCENE_MIN_HITS,
    CTL_SCENE_NO_SPECKLES,
    CTL_SCENE_LABEL_VOTES,
    CTL_SCENE_ESTIMATE,
    CTL_SCENE_ODOMETRY,
    CTL_SCENE_END
};

#define CTL_SCENE_BIT(option) ((ctl_bits)1 << ((option)-CTL_OPT_FIRST_OWN))

/* The options that make an operation of an edit. */
#define CTL_SCENE_SHAPE_BITS                                                             \
    (CTL_SCENE_BIT(CTL_SCENE_BOX) | CTL_SCENE_BIT(CTL_SCENE_BALL) |                      \
     CTL_SCENE_BIT(CTL_SCENE_CAPSULE) | CTL_SCENE_BIT(CTL_SCENE_HALF_SPACE) |            \
     CTL_SCENE_BIT(CTL_SCENE_POINTS) | CTL_SCENE_BIT(CTL_SCENE_NOISE) |                  \
     CTL_SCENE_BIT(CTL_SCENE_FILL) | CTL_SCENE_BIT(CTL_SCENE_ERASE) |                    \
     CTL_SCENE_BIT(CTL_SCENE_FREE) | CTL_SCENE_BIT(CTL_SCENE_PAINT) |                    \
     CTL_SCENE_BIT(CTL_SCENE_SWAP) | CTL_SCENE_BIT(CTL_SCENE_ERODE) |                    \
     CTL_SCENE_BIT(CTL_SCENE_DILATE) | CTL_SCENE_BIT(CTL_SCENE_COPY_FROM) |              \
     CTL_SCENE_BIT(CTL_SCENE_TURN) | CTL_SCENE_BIT(CTL_SCENE_COPY_EMPTY) |               \
     CTL_SCENE_BIT(CTL_SCENE_HEIGHTS) | CTL_SCENE_BIT(CTL_SCENE_GRID) |                  \
     CTL_SCENE_BIT(CTL_SCENE_POINT_MATERIALS) | CTL_SCENE_BIT(CTL_SCENE_PIN) |           \
     CTL_SCENE_BIT(CTL_SCENE_UNPIN) | CTL_SCENE_BIT(CTL_SCENE_LEAVE))

/* The options for creating a scene, besides the size of its voxels. */
#define CTL_SCENE_CREATE_BITS                                                            \
    (CTL_SCENE_BIT(CTL_SCENE_DEPTH) | CTL_SCENE_BIT(CTL_SCENE_BITS) |                    \
     CTL_SCENE_BIT(CTL_SCENE_TRACK_FREE) | CTL_SCENE_BIT(CTL_SCENE_ORIGIN) |             \
     CTL_SCENE_BIT(CTL_SCENE_FRAME) | CTL_SCENE_BIT(CTL_SCENE_PALETTE) |                 \
     CTL_SCENE_BIT(CTL_SCENE_MAX_BYTES) | CTL_SCENE_BIT(CTL_SCENE_KEEP) |                \
     CTL_SCENE_BIT(CTL_SCENE_KEEP_SECONDS) | CTL_SCENE_BIT(CTL_SCENE_DURABLE) |          \
     CTL_SCENE_BIT(CTL_SCENE_FUSION) | CTL_SCENE_BIT(CTL_SCENE_LOG_ODDS) |               \
     CTL_SCENE_BIT(CTL_SCENE_LABEL_VOTES) | CTL_SCENE_BIT(CTL_SCENE_JOURNAL_BYTES))

/* The part of an operation that lies in a file. */
enum ctl_scene_part {
    CTL_SCENE_PART_POINTS,
    CTL_SCENE_PART_MATERIALS,
    CTL_SCENE_PART_HEIGHTS
};

struct ctl_scene_file {
    size_t operation;
    enum ctl_scene_part part;
    const char *path;
};

/* A parsed command line. Members that were not given are zero or NULL. */
struct ctl_scene_args {
    const char *const *words; /* after the options */
    size_t n_words;
    ctl_bits given;   /* CTL_SCENE_BIT of the options that were */
    bool makes_edits; /* shapes and actions are operations of an edit */
    double size_m;
    uint32_t depth;
    uint32_t material_bits;
    double origin_m[3];
    const char *frame_id;
    struct voxeld_scene_material palette[CTL_SCENE_MAX_PALETTE];
    char palette_names[CTL_SCENE_MAX_PALETTE][64];
    size_t n_palette;
    uint64_t max_bytes;
    enum voxeld_scene_fusion fusion;
    double log_odds[5]; /* hit, miss, clamps, occupied */
    uint32_t label_votes;
    struct voxeld_scene_operations operations; /* freed by scene.c */
    struct ctl_scene_file files[CTL_SCENE_MAX_FILES];
    size_t n_files;
    struct voxeld_scene_box box; /* of an export */
    const char *json;            /* --operations */
    uint64_t if_version;
    const char *scene; /* --scene */
    const char *poses;
    const char *format;
    double max_range_m;
    enum voxeld_scene_rule rule;
    uint32_t material;
    const char *field;
    double range[2];
    double retry_s;
    double radius_m;
    const char *out;
    uint32_t level;
    const char *network;
    const char *labels; /* as given */
    const char *output;
    const char *odometry;
    const char *digest;
    uint32_t keep_versions;
    uint64_t keep_seconds;
    enum voxeld_scene_fsync fsync;
    uint64_t journal_max_bytes;
    uint64_t of_version;
    struct voxeld_scene_at at; /* --at */
    struct voxeld_scene_at from;
    struct voxeld_scene_at to;
    const char *to_scene;
    uint32_t limit;
    double half_life_s;
    double elapsed_s;
    uint64_t until_ns;
    double factor;
    double step;
    double keep_ball[4]; /* --keep-ball */
    uint32_t min_hits;
};

struct ctl_scene_sub {
    struct ctl_command command; /* .run unused */
    ctl_bits options;           /* bits of those it takes */
    size_t n_min;               /* words after the options */
    size_t n_max;
    bool makes_edits;
    bool is_local; /* run needs no daemon: its client is NULL */
    /* Checks what getopt cannot see: CTL_OK, or CTL_USAGE after a message. May be
     * NULL. */
    int (*check)(const struct ctl_scene_args *args);
    int (*run)(struct voxeld_client *client, const struct ctl_globals *globals,
               struct ctl_scene_args *args);
    /* Of a subcommand with options of its own, instead of all else but command: does
     * everything. argv[0] is the subcommand. */
    int (*main)(struct ctl_globals *globals, int argc, char **argv);
};

extern const struct ctl_scene_sub ctl_scene_create;
extern const struct ctl_scene_sub ctl_scene_drop;
extern const struct ctl_scene_sub ctl_scene_list;
extern const struct ctl_scene_sub ctl_scene_info;
extern const struct ctl_scene_sub ctl_scene_edit;
extern const struct ctl_scene_sub ctl_scene_integrate;
extern const struct ctl_scene_sub ctl_scene_import;
extern const struct ctl_scene_sub ctl_scene_query;
extern const struct ctl_scene_sub ctl_scene_export;
extern const struct ctl_scene_sub ctl_scene_log;
extern const struct ctl_scene_sub ctl_scene_undo;
extern const struct ctl_scene_sub ctl_scene_redo;
extern const struct ctl_scene_sub ctl_scene_snapshot;
extern const struct ctl_scene_sub ctl_scene_branch;
extern const struct ctl_scene_sub ctl_scene_diff;
extern const struct ctl_scene_sub ctl_scene_verify;
extern const struct ctl_scene_sub ctl_scene_collect;
extern const struct ctl_scene_sub ctl_scene_repair;
extern const struct ctl_scene_sub ctl_scene_distance;
extern const struct ctl_scene_sub ctl_scene_collide;
extern const struct ctl_scene_sub ctl_scene_costmap;
extern const struct ctl_scene_sub ctl_scene_frontiers;
extern const struct ctl_scene_sub ctl_scene_decay;

/* scene_args.c: parses a command line: CTL_OK and *go_on, or the exit status. The
 * caller clears args->operations in either case. */
int ctl_scene_parse(struct ctl_globals *globals, const struct ctl_scene_sub *sub,
                    int argc, char **argv, struct ctl_scene_args *args, bool *go_on);

static inline bool ctl_scene_has(const struct ctl_scene_args *args,
                                 enum ctl_scene_option option)
{
    return (args->given & CTL_SCENE_BIT(option)) != 0;
}

/* scene_shapes.c: takes one option that begins or changes the last operation of the
 * edit. False where its value is malformed, or there is no operation to change. */
bool ctl_scene_take_shape(struct ctl_scene_args *args, enum ctl_scene_option id,
                          const char *value);

/* scene_labels.c: reads LABEL=MATERIAL,... or, if it has no '=', a file of such
 * entries, a line each or several separated by commas. CTL_FAILED or CTL_USAGE after a
 * message. The caller frees *out in either case. */
struct ctl_scene_labels;
int ctl_scene_labels_read(const char *given, struct ctl_scene_labels **out);
const struct voxeld_scene_label *
ctl_scene_labels_get(const struct ctl_scene_labels *labels, size_t *n);
void ctl_scene_labels_free(struct ctl_scene_labels *labels);

/* scene_admin.c: makes the request that creates a scene as the options say. */
struct voxeld_scene_create_request
ctl_scene_create_request(const struct ctl_scene_args *args, const char *name);

/* scene_admin.c: prints a scene as a JSON object, and as a line of text. */
void ctl_scene_print_json(const struct voxeld_scene_info *scene, bool counted);
void ctl_scene_print_text(const struct voxeld_scene_info *scene);

/* scene_export.c: grows *block to n elements; false without memory, and then *block
 * stays. */
bool ctl_scene_grow(void **block, size_t n, size_t n_bytes);

/* scene_undo.c: makes the client_id of this process, which begins with its user's part
 * and differs from every other one. It distinguishes the changes that a user made by voxelctl
 * on this machine from all others. */
enum {
    CTL_SCENE_ID_BYTES = 64
};
void ctl_scene_client_id(char id[CTL_SCENE_ID_BYTES]);

/* scene_edit.c: prints what a change did, as JSON members without the first comma. */
void ctl_scene_print_change(const struct voxeld_scene_change *change);

/* Prints the same as text, without an end of line. */
void ctl_scene_print_counts(const struct voxeld_scene_change *change);

/* scene_json.c: the operations of a JSON file, with the memory of their arrays. */
struct ctl_scene_json;

/* Appends the file's operations to the list. CTL_FAILED after a message. In either
 * case the caller frees *out, after it has used the list. */
int ctl_scene_json_read(const char *path, struct voxeld_scene_operations *list,
                        struct ctl_scene_json **out);
void ctl_scene_json_free(struct ctl_scene_json *json);

#endif
