// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl scene share: each prints what its generated manual promises. */
#ifndef VXD_CLIENT_VOXELCTL_SCENE_SCENE_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_SCENE_SCENE_COMMANDS_H

#include "client/voxelctl/generated/scene_args.h"

enum {
    CTL_SCENE_MAX_FILES = 64
};

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

/* The operations of an edit, and the files that parts of them lie in. */
struct ctl_scene_edits {
    struct voxeld_scene_operations operations;
    struct ctl_scene_file files[CTL_SCENE_MAX_FILES];
    struct ctl_array arrays[CTL_SCENE_MAX_FILES]; /* once they are read */
    size_t n_files;
};

/* scene_shapes.c: makes operations of the shapes and actions of the command line. CTL_USAGE after a
 * message; the caller clears edits->operations in either case. */
int ctl_scene_take_shapes(const struct ctl_scene_args *args,
                          struct ctl_scene_edits *edits);

/* scene_labels.c: reads LABEL=MATERIAL,... or, if it has no '=', a file of such
 * entries, a line each or several separated by commas. CTL_FAILED or CTL_USAGE after a
 * message. The caller frees *out in either case. */
struct ctl_scene_labels;
int ctl_scene_labels_read(const char *given, struct ctl_scene_labels **out);
const struct voxeld_scene_label *
ctl_scene_labels_get(const struct ctl_scene_labels *labels, size_t *n);
void ctl_scene_labels_free(struct ctl_scene_labels *labels);

/* scene_export.c: grows *block to n elements; false without memory, and then *block
 * stays. */
bool ctl_scene_grow(void **block, size_t n, size_t n_bytes);

/* scene_edit.c: prints what a change did as text, without an end of line. */
void ctl_scene_print_counts(const struct voxeld_scene_change *change);

/* scene_json.c: appends the operations of a JSON file to the list. CTL_FAILED after a message. In
 * either case the caller frees *out, after it has used the list. */
struct ctl_scene_json;
int ctl_scene_json_read(const char *path, struct voxeld_scene_operations *list,
                        struct ctl_scene_json **out);
void ctl_scene_json_free(struct ctl_scene_json *json);

#endif
