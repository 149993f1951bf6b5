// SPDX-License-Identifier: Apache-2.0
/* The depth images of a folder, in order, with their poses and colours.
 *
 * 7-Scenes  frame-000000.depth.png, .color.png or .color.jpg, .pose.txt
 * TUM       depth.txt and rgb.txt, lines "stamp file"; groundtruth.txt, lines "stamp x y z qx qy qz
 *           qw"; # begins a comment. A depth image takes the nearest pose and colour image in time,
 *           at most 0.02 s away, as TUM's own tools do */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/voxelctl/volume/volume_commands.h"

#define MAX_APART_S 0.02
#define DEPTH_ENDING ".depth.png"

void ctl_folder_clear(struct ctl_folder *folder)
{
    for (size_t i = 0; i < folder->n; i++) {
        free(folder->shots[i].depth);
        free(folder->shots[i].colour);
    }
    free(folder->shots);
    *folder = (struct ctl_folder){0};
}

static int no_memory(void)
{
    (void)ctl_error("no memory");
    return CTL_FAILED;
}

/* "folder/name" without `cut` characters at its end, and `ending` behind; NULL = no memory. */
static char *path_of(const char *folder, const char *name, size_t cut, const char *ending)
{
    size_t n_name = strlen(name) - cut;
    size_t n = strlen(folder) + n_name + strlen(ending) + 2;
    char *path = malloc(n);

    if (path != NULL) {
        (void)snprintf(path, n, "%s/%.*s%s", folder, (int)n_name, name, ending);
    }
    return path;
}

static bool exists(const char *path)
{
    return path != NULL && access(path, R_OK) == 0;
}

/* --- 7-Scenes ---------------------------------------------------------------------------- */

static int is_depth(const struct dirent *entry)
{
    return ctl_has_ending(entry->d_name, DEPTH_ENDING) ? 1 : 0;
}

/* Takes one image; without poses of the caller's, with that of its own file, if it has one. */
static int take_frame(const char *folder, const char *name, bool own_pose,
                      struct ctl_shot *shot)
{
    static const char *const colours[] = {".color.png", ".color.jpg"};
    size_t cut = strlen(DEPTH_ENDING);
    char *pose = path_of(folder, name, cut, ".pose.txt");

    if (pose == NULL) {
        return no_memory();
    }
    shot->has_pose =
        own_pose && exists(pose) && ctl_read_pose(pose, &shot->pose) == CTL_OK;
    free(pose);
    shot->depth = path_of(folder, name, 0, "");
    for (int i = 0; i < 2 && shot->colour == NULL; i++) {
        shot->colour = path_of(folder, name, cut, colours[i]);
        if (!exists(shot->colour)) {
            free(shot->colour);
            shot->colour = NULL;
        }
    }
    return shot->depth != NULL ? CTL_OK : no_memory();
}

static int read_frames(const char *path, const char *poses, struct dirent *const *entries,
                       size_t n, struct ctl_folder *out)
{
    struct voxeld_pose *given = NULL;
    int result = CTL_OK;

    if (poses != NULL) {
        result = ctl_read_poses(poses, n, &given);
    }
    for (size_t i = 0; i < n && result == CTL_OK; i++) {
        struct ctl_shot *shot = &out->shots[out->n++];

        shot->stamp = (double)i;
        result = take_frame(path, entries[i]->d_name, given == NULL, shot);
        if (given != NULL) {
            shot->pose = given[i];
            shot->has_pose = true;
        }
    }
    free(given);
    return result;
}

/* --- TUM ----------------------------------------------------------------------------------- */

/* A line of a list: its stamp, and the text behind it. */
struct stamped {
    double stamp;
    const char *text;
};

struct list {
    char *bytes;
    struct stamped *lines;
    size_t n;
};

static void list_free(struct list *list)
{
    free(list->bytes);
    free(list->lines);
}

/* Reads a list; lines that begin with no number are left out. */
static int read_list(const char *path, struct list *out)
{
    uint8_t *file = NULL;
    size_t n_bytes = 0;
    size_t n_lines = 1;
    int result = ctl_read_file(path, &file, &n_bytes);

    *out = (struct list){0};
    if (result != CTL_OK) {
        return result;
    }
    out->bytes = malloc(n_bytes + 1);
    for (size_t i = 0; i < n_bytes; i++) {
        n_lines += file[i] == '\n' ? 1 : 0;
    }
    out->lines = calloc(n_lines, sizeof *out->lines);
    if (out->bytes == NULL || out->lines == NULL) {
        free(file);
        return no_memory();
    }
    memcpy(out->bytes, file, n_bytes);
    out->bytes[n_bytes] = '\0';
    free(file);
    for (char *line = out->bytes; line != NULL;) {
        char *next = strchr(line, '\n');
        char *end;
        double stamp;

        if (next != NULL) {
            *next++ = '\0';
        }
        stamp = strtod(line, &end);
        if (end != line && isfinite(stamp)) {
            end += strspn(end, " \t,");
            end[strcspn(end, "\r")] = '\0';
            out->lines[out->n++] = (struct stamped){stamp, end};
        }
        line = next;
    }
    return CTL_OK;
}

/* The line nearest in time; NULL where none is near enough. */
static const struct stamped *nearest(const struct list *list, double stamp)
{
    const struct stamped *best = NULL;

    for (size_t i = 0; i < list->n; i++) {
        double apart = fabs(list->lines[i].stamp - stamp);

        if (apart <= MAX_APART_S && (best == NULL || apart < fabs(best->stamp - stamp))) {
            best = &list->lines[i];
        }
    }
    return best;
}

static bool parse_pose(const char *text, struct voxeld_pose *out)
{
    double v[7];
    double norm = 0;

    for (int i = 0; i < 7; i++) {
        char *end;

        v[i] = strtod(text, &end);
        if (end == text || !isfinite(v[i])) {
            return false;
        }
        text = end;
    }
    for (int i = 3; i < 7; i++) {
        norm += v[i] * v[i];
    }
    memcpy(out->translation_m, v, sizeof out->translation_m);
    for (int i = 0; i < 4; i++) {
        out->rotation[i] = v[3 + i] / sqrt(norm);
    }
    return norm > 0.5 && norm < 2;
}

static int take_stamped(const char *folder, const struct stamped *depth,
                        const struct list *colours, const struct list *poses,
                        struct ctl_folder *out)
{
    const struct stamped *pose = nearest(poses, depth->stamp);
    const struct stamped *colour = nearest(colours, depth->stamp);
    struct ctl_shot *shot = &out->shots[out->n++];

    shot->stamp = depth->stamp;
    shot->has_pose = pose != NULL && parse_pose(pose->text, &shot->pose);
    shot->depth = path_of(folder, depth->text, 0, "");
    shot->colour = colour != NULL ? path_of(folder, colour->text, 0, "") : NULL;
    return shot->depth != NULL && (colour == NULL || shot->colour != NULL) ? CTL_OK
                                                                           : no_memory();
}

static int read_tum(const char *path, const char *poses, struct ctl_folder *out)
{
    char *names[3] = {path_of(path, "depth.txt", 0, ""), path_of(path, "rgb.txt", 0, ""),
                      path_of(path, "groundtruth.txt", 0, "")};
    struct list depths = {0};
    struct list colours = {0};
    struct list trajectory = {0};
    int result = CTL_FAILED;

    if (names[0] == NULL || names[1] == NULL || names[2] == NULL) {
        (void)no_memory();
        goto out;
    }
    if (read_list(names[0], &depths) != CTL_OK ||
        (exists(names[1]) && read_list(names[1], &colours) != CTL_OK) ||
        ((poses != NULL || exists(names[2])) &&
         read_list(poses != NULL ? poses : names[2], &trajectory) != CTL_OK)) {
        goto out;
    }
    out->is_tum = true;
    out->shots = calloc(depths.n + 1, sizeof *out->shots);
    result = out->shots != NULL ? CTL_OK : no_memory();
    for (size_t i = 0; i < depths.n && result == CTL_OK; i++) {
        result = take_stamped(path, &depths.lines[i], &colours, &trajectory, out);
    }
out:
    list_free(&depths);
    list_free(&colours);
    list_free(&trajectory);
    for (int i = 0; i < 3; i++) {
        free(names[i]);
    }
    return result;
}

int ctl_folder_read(const char *path, const char *poses, struct ctl_folder *out)
{
    char *depths = path_of(path, "depth.txt", 0, "");
    bool is_tum = exists(depths);
    struct dirent **entries = NULL;
    int n = is_tum ? 0 : scandir(path, &entries, is_depth, alphasort);
    int result = CTL_FAILED;

    *out = (struct ctl_folder){0};
    free(depths);
    if (is_tum) {
        result = read_tum(path, poses, out);
    } else if (n > 0) {
        out->shots = calloc((size_t)n, sizeof *out->shots);
        result = out->shots == NULL ? no_memory()
                                    : read_frames(path, poses, entries, (size_t)n, out);
    }
    for (int i = 0; i < n; i++) {
        free(entries[i]);
    }
    free(entries);
    if (n <= 0 && !is_tum) {
        (void)ctl_error("%s: no images; NAME" DEPTH_ENDING
                        " (7-Scenes) or depth.txt (TUM) is right",
                        path);
    } else if (result == CTL_OK && out->n == 0) {
        (void)ctl_error("%s/depth.txt: no images", path);
        result = CTL_FAILED;
    }
    return result;
}

size_t ctl_folder_n_posed(const struct ctl_folder *folder)
{
    size_t n = 0;

    for (size_t i = 0; i < folder->n; i++) {
        n += folder->shots[i].has_pose ? 1 : 0;
    }
    return n;
}

void ctl_folder_keep_posed(struct ctl_folder *folder)
{
    size_t n = 0;

    for (size_t i = 0; i < folder->n; i++) {
        struct ctl_shot shot = folder->shots[i];

        if (shot.has_pose) {
            folder->shots[n++] = shot;
        } else {
            (void)ctl_error("%s: no pose%s", shot.depth,
                            folder->is_tum ? " within 0.02 s of it" : "");
            free(shot.depth);
            free(shot.colour);
        }
    }
    folder->n = n;
}
